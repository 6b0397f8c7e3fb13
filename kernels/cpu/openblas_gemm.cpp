// SPDX-License-Identifier: Apache-2.0
#include <cblas.h>

#include "kernels/cpu/gemm.h"

namespace weft::kernels::cpu {
namespace {

CBLAS_TRANSPOSE order(bool transposed) { return transposed ? CblasTrans : CblasNoTrans; }
blasint size(int64_t value) { return static_cast<blasint>(value); }

}  // namespace

void gemm(const GemmShape& s, float alpha, const float* a, const float* b, float beta, float* c) {
  cblas_sgemm(CblasRowMajor, order(s.transpose_a), order(s.transpose_b), size(s.m), size(s.n), size(s.k), alpha, a,
              size(s.lda), b, size(s.ldb), beta, c, size(s.ldc));
}

void gemm(const GemmShape& s, double alpha, const double* a, const double* b, double beta, double* c) {
  cblas_dgemm(CblasRowMajor, order(s.transpose_a), order(s.transpose_b), size(s.m), size(s.n), size(s.k), alpha, a,
              size(s.lda), b, size(s.ldb), beta, c, size(s.ldc));
}

}  // namespace weft::kernels::cpu
