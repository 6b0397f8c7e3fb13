// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/contracts/linalg_checks.h"
#include "kernels/runtime/queue.h"

// Work that cuSOLVER leaves to its caller (engines/cusolver_library.cpp). Matrices are dense [B, M, N], in f32 or f64.

namespace weft::kernels::cuda {

/// Sets wrong[b] to 1 where `part` of matrix b has inf or NaN.
void find_not_finite(const Queue& queue, int32_t* wrong, const View& x, MatrixPart part);

/// Sets zero[b] to the place of the first 0 on the diagonal of x [B, N, N], counted from 1; else it stays.
void find_zero_on_diagonal(const Queue& queue, int32_t* zero, const View& x);

/// Writes 0 outside of `part`.
void keep_part(const Queue& queue, const View& x, MatrixPart part);

/// parity[b] = the determinant of the permutation that exchanges row i and row pivots[b, i] - 1, for each i.
void parity_of_pivots(const Queue& queue, const View& parity, const int64_t* pivots, int64_t n);

}  // namespace weft::kernels::cuda
