// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "emulator/cublas/matrices.h"

namespace emulator::blas {

/// C = alpha op(A) op(B) + beta C, a batch of them.
struct Gemm {
  cublasOperation_t op_a, op_b;
  int64_t m, n, k;
  Argument a, b, c;  ///< matrices, or arrays of pointers to them
  cudaDataType_t a_type, b_type, c_type;
  cublasComputeType_t compute;
  int64_t batches = 1;
  bool by_pointers = false;
};
void gemm(const char* name, cublasHandle_t handle, const Gemm& what, const void* alpha, const void* beta);

}  // namespace emulator::blas
