// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// x with the elements along each of `dims` in reverse order.
Tensor flip(const Tensor& x, const std::vector<int64_t>& dims);
/// x with its elements moved by `shift` places along `dim`; elements that leave at an end enter at the other.
Tensor roll(const Tensor& x, Integer shift, Integer dim);
/// x repeated counts[d] times along dimension d; more counts than dimensions put new ones in front. Errors: fewer
/// counts than dimensions, a negative one.
Tensor repeat(const Tensor& x, const std::vector<int64_t>& counts);

// Views of x, one after another along `dim`.

/// Parts of these sizes. Errors: sizes that do not sum up to x's.
std::vector<Tensor> split(const Tensor& x, const std::vector<int64_t>& sizes, Integer dim = 0);
/// Parts of `size`; the last part may be smaller. Errors: size < 1.
std::vector<Tensor> split(const Tensor& x, Integer size, Integer dim = 0);
/// At most `count` parts of equal size, the last one smaller. Errors: count < 1.
std::vector<Tensor> chunk(const Tensor& x, Integer count, Integer dim = 0);

}  // namespace weft
