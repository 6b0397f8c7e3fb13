// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// The tensors one after another along `dim`; other sizes equal; dtypes are promoted. Errors: none given, sizes differ.
Tensor concat(const std::vector<Tensor>& tensors, Integer dim = 0);

/// The tensors as slices of a new dimension `dim`. Errors: none given, sizes differ.
Tensor stack(const std::vector<Tensor>& tensors, Integer dim = 0);

/// x with `before` zeros before and `after` zeros after it along `dim`. Errors: negative numbers.
Tensor pad(const Tensor& x, Integer dim, Integer before, Integer after);

/// The elements beyond the ends of x = abc: cb|abc|ba, aa|abc|cc or bc|abc|ab.
enum class PadMode { reflect, replicate, circular };
/// As above, with elements of x. Errors: no element, more than x has (reflect: but one).
Tensor pad(const Tensor& x, Integer dim, Integer before, Integer after, PadMode mode);

}  // namespace weft
