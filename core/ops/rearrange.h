// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// x with the elements along each of `dims` in reverse order.
Tensor flip(const Tensor& x, const std::vector<int64_t>& dims);
/// x with its elements moved by `shift` places along `dim`; elements that leave at an end enter at the other.
Tensor roll(const Tensor& x, Integer shift, Integer dim);
/// x turned by `quarters` of a circle, from dimension `from` to `to`. Errors: one dimension.
Tensor rot90(const Tensor& x, Integer quarters = 1, Integer from = 0, Integer to = 1);
/// x repeated counts[d] times along dimension d; more counts than dimensions put new ones in front. Errors: fewer
/// counts than dimensions, a negative one.
Tensor repeat(const Tensor& x, const std::vector<int64_t>& counts);

/// Each slice of x along `dim` `count` times in a row. Errors: a negative count.
Tensor repeat_interleave(const Tensor& x, Integer count, Integer dim);
/// Slice i of x along `dim` counts[i] times (i64, rank 1, not negative). Waits for the device. Errors: other sizes.
Tensor repeat_interleave(const Tensor& x, const Tensor& counts, Integer dim);

/// A tensor of x's sizes, dtype and device, filled with `value`, or with 1. Errors: the dtype does not hold it.
Tensor full_like(const Tensor& x, Number value);
Tensor ones_like(const Tensor& x);
/// `count` numbers from start to end in equal steps. Errors: count < 1, not a floating dtype.
Tensor linspace(double start, double end, Integer count, DType dtype = DType::f32, Device device = {});
/// `base` to the power of linspace().
Tensor logspace(double start, double end, Integer count, double base = 10, DType dtype = DType::f32,
                Device device = {});
/// The identity [n, n]. Errors: n < 0.
Tensor eye(Integer n, DType dtype = DType::f32, Device device = {});
/// Rows and columns [2, n] (i64) of the elements on and below diagonal number `offset` of [rows, columns], or on and
/// above it. Errors: a negative size.
Tensor tril_indices(Integer rows, Integer columns, Integer offset = 0, Device device = {});
Tensor triu_indices(Integer rows, Integer columns, Integer offset = 0, Device device = {});
/// The diagonal number `offset` of the matrices x [..., R, C] (positive: to the right of the main one), a view where
/// x is dense. Errors: fewer than two dimensions.
Tensor diagonal(const Tensor& x, Integer offset = 0);
/// Matrices [..., n, n] with x [..., m] as diagonal number `offset`, n = m + |offset|, and zeros elsewhere.
Tensor diag_embed(const Tensor& x, Integer offset = 0);
/// diag_embed() of a vector, diagonal() of a matrix. Errors: other ranks.
Tensor diag(const Tensor& x, Integer offset = 0);
/// The matrices [R, C] one below and beside the other, and zeros elsewhere; a vector is one row. Errors: none, other
/// ranks, two dtypes or devices.
Tensor block_diag(const std::vector<Tensor>& blocks);
/// For vectors of n, m, … elements: each of them over the grid [n, m, …], as views. Errors: other ranks.
std::vector<Tensor> meshgrid(const std::vector<Tensor>& axes);

// Views of x, one after another along `dim`.

/// The slices of x without the dimension.
std::vector<Tensor> unbind(const Tensor& x, Integer dim = 0);

/// Parts of these sizes. Errors: sizes that do not sum up to x's.
std::vector<Tensor> split(const Tensor& x, const std::vector<int64_t>& sizes, Integer dim = 0);
/// Parts of `size`; the last part may be smaller. Errors: size < 1.
std::vector<Tensor> split(const Tensor& x, Integer size, Integer dim = 0);
/// At most `count` parts of equal size, the last one smaller. Errors: count < 1.
std::vector<Tensor> chunk(const Tensor& x, Integer count, Integer dim = 0);

}  // namespace weft
