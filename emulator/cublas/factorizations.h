// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "emulator/cublas/matrices.h"

// LU and QR of batches of small matrices. Matrices are arrays of pointers on the device; `info` is one int a matrix:
// 0, or k if element (k, k) of the triangle is 0 (k from 1).

namespace emulator::blas {

struct Batch {
  int64_t n;  ///< order
  Argument a;
  int64_t count;  ///< matrices
  cudaDataType_t type;
};

/// A becomes L and U of P A = L U. `pivots` [count, n]: rows from 1; nullptr: no exchange of rows.
void lu(const char* name, cublasHandle_t handle, const Batch& batch, int* pivots, int* info);
/// B becomes the solution of op(A) X = B. `info`: one int on the host.
void solve_by_lu(const char* name, cublasHandle_t handle, const Batch& batch, cublasOperation_t op, int64_t columns,
                 const int* pivots, Argument b, int* info);
/// C = A^-1. `factored`: A is L and U; else it is the matrix itself, of at most 32 rows.
void invert(const char* name, cublasHandle_t handle, const Batch& batch, bool factored, const int* pivots, Argument c,
            int* info);
/// A [m, n] becomes R and the Householder vectors below; tau has an array of min(m, n) scalars for each matrix.
void qr(const char* name, cublasHandle_t handle, int64_t m, const Batch& batch, const void* tau, int* info);
/// The first n rows of C [m, columns] become the X that minimises |A X - C|. A becomes R and the Householder vectors.
void least_squares(const char* name, cublasHandle_t handle, cublasOperation_t op, int64_t m, int64_t columns,
                   const Batch& batch, Argument c, int* info, int* infos);

}  // namespace emulator::blas
