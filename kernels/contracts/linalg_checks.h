// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <initializer_list>

#include "kernels/view.h"

// Checks of all implementations of contracts/linalg.h, with their errors' texts. `b` is the matrix in its batch, `info`
// is the code of LAPACK or cuSOLVER.

namespace weft::kernels {

/// The elements of a matrix that a function reads.
enum class MatrixPart : uint8_t { all, lower, upper };

/// Are there matrices to compute? Errors: not dense, not one batch.
inline bool has_matrices(const char* op, const View& x, std::initializer_list<const View*> others) {
  bool dense = x.rank == 3 && x.is_contiguous() && (x.dtype == DType::f32 || x.dtype == DType::f64);
  for (const View* view : others)
    dense = dense && view->is_contiguous() && view->dtype == x.dtype && view->sizes[0] == x.sizes[0];
  WEFT_CHECK(dense && x.sizes[1] <= INT32_MAX && x.sizes[2] <= INT32_MAX, op, ": expected dense matrices, got ", x);
  return x.numel() > 0;
}

inline void check_finite(const char* op, bool finite, int64_t b, const View& x) {
  WEFT_CHECK(finite, op, ": expected finite numbers, got inf or NaN in matrix ", b, " of ", x);
}

inline void check_parameters(const char* op, int info) {
  WEFT_CHECK(info >= 0, op, ": the library fails with code ", info);
}

inline void check_convergence(const char* op, int info, int64_t b) {
  check_parameters(op, info);
  WEFT_CHECK(info == 0, op, ": the iteration does not converge for matrix ", b);
}

inline void check_positive(int info, int64_t b) {
  check_parameters("cholesky", info);
  WEFT_CHECK(info == 0, "cholesky: expected positive-definite matrices, got matrix ", b,
             " whose leading minor of order ", info, " is not positive");
}

inline void check_invertible(int info, int64_t b) {
  check_parameters("solve", info);
  WEFT_CHECK(info == 0, "solve: expected invertible matrices, got matrix ", b, " that is singular (pivot ", info,
             " is 0)");
}

/// `info`: the first 0 on a triangle's diagonal, counted from 1.
inline void check_diagonal(int info, int64_t b) {
  check_parameters("triangular_solve", info);
  WEFT_CHECK(info == 0, "triangular_solve: expected no 0 on the diagonal, got matrix ", b, " with a 0 at place ",
             info - 1);
}

}  // namespace weft::kernels
