// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace weft::kernels::cpu {

/// The sizes of one product and whether its factors are stored transposed.
struct GemmShape {
  int64_t m, n, k;
  bool transpose_a = false, transpose_b = false;
  int64_t lda, ldb, ldc;  ///< elements between rows as stored
};

/// c = alpha op(a) op(b) + beta c in row-major order; beta 0 never reads c. From OpenBLAS (openblas_gemm.cpp), or plain
/// loops where it is missing (no_openblas_gemm.cpp).
void gemm(const GemmShape& shape, float alpha, const float* a, const float* b, float beta, float* c);
void gemm(const GemmShape& shape, double alpha, const double* a, const double* b, double beta, double* c);

}  // namespace weft::kernels::cpu
