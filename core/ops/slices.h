// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// Dimension `from` becomes dimension `to`; the others keep their order. A view.
Tensor movedim(const Tensor& x, Integer from, Integer to);
/// x[i + 1] - x[i] along `dim`, `times` times.
Tensor diff(const Tensor& x, Integer dim = -1, Integer times = 1);

/// y = x, then y[index[i], …] += alpha source[i, …] (shown for dim = 0): index i64 [K], source of x's sizes with K
/// along `dim`. Errors: as scatter_add.
Tensor index_add(const Tensor& x, Integer dim, const Tensor& index, const Tensor& source, Number alpha = 1);
/// y = x, then y[index[i], …] = source[i, …], or one number. Errors: as scatter.
Tensor index_copy(const Tensor& x, Integer dim, const Tensor& index, const Tensor& source);
Tensor index_fill(const Tensor& x, Integer dim, const Tensor& index, Number value);

}  // namespace weft
