// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// y[i, j, …] = x[i, index[i, j, …], …] (shown for dim = 1), of index's sizes: index (integers) has x's rank, and is no
/// longer than x but along `dim`. Errors: sizes that do not fit; a position outside of x (on the CPU; on other devices
/// floating results are NaN there).
Tensor gather(const Tensor& x, Integer dim, const Tensor& index);

/// y = x, then y[i, index[i, j, …], …] += source[i, j, …] (shown for dim = 1), in order of the sources: the same bits
/// in every run. index (integers) is no longer than source, nor than x but along `dim`. Errors: sizes or dtypes that do
/// not fit; on the CPU a position outside of x (on other devices it is left out).
Tensor scatter_add(const Tensor& x, Integer dim, const Tensor& index, const Tensor& source);

/// y = x, then y[i, index[i, j, …], …] = source[i, j, …] (shown for dim = 1); where a position occurs twice, the later
/// source stays and gets the gradient. Any dtype. index (integers) as for scatter_add. Errors: sizes or dtypes that do
/// not fit; a position outside of x (on other devices than the CPU: at the next wait for the device).
Tensor scatter(const Tensor& x, Integer dim, const Tensor& index, const Tensor& source);
Tensor scatter(const Tensor& x, Integer dim, const Tensor& index, Number value);

/// How several sources become one.
enum class Reduce { sum, mean, max, min };
/// y = x; then source[i, j, …] joins y[i, index[i, j, …], …] by sum, mean, maximum or minimum (shown for dim = 1).
/// Without `include_self` x counts only where no source goes. Elements that tie share the gradient equally. Floating;
/// index as for scatter_add. Errors: as scatter_add.
Tensor scatter_reduce(const Tensor& x, Integer dim, const Tensor& index, const Tensor& source, Reduce reduce,
                      bool include_self = true);

/// y = the slices of x along `dim` at the positions of `index` (rank 1, integers). Errors: a position outside of x (on
/// the CPU; on other devices floating results are NaN there).
Tensor index_select(const Tensor& x, Integer dim, const Tensor& index);

/// [..., classes]: 1 at each label's class, else 0. labels are integers. Errors: on the CPU a label outside of
/// [0, classes); on other devices its row is 0.
Tensor one_hot(const Tensor& labels, Integer classes, DType dtype = DType::f32);

}  // namespace weft
