// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/parallel.h"

namespace weft::kernels::cpu {
namespace {

// Plain loops, the innermost along a row of c: each row of c is a sum of rows of b.
template <class T>
void plain_gemm(const GemmShape& s, T alpha, const T* a, const T* b, T beta, T* c) {
  const int64_t a_row = s.transpose_a ? 1 : s.lda, a_column = s.transpose_a ? s.lda : 1;
  const int64_t b_row = s.transpose_b ? 1 : s.ldb, b_column = s.transpose_b ? s.ldb : 1;
  parallel_for(s.m, s.n * s.k, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      T* row = c + i * s.ldc;
      for (int64_t j = 0; j < s.n; ++j) row[j] = beta == T(0) ? T(0) : beta * row[j];
      for (int64_t k = 0; k < s.k; ++k) {
        const T factor = alpha * a[i * a_row + k * a_column];
        const T* b_run = b + k * b_row;
        for (int64_t j = 0; j < s.n; ++j) row[j] += factor * b_run[j * b_column];
      }
    }
  });
}

}  // namespace

void gemm(const GemmShape& shape, float alpha, const float* a, const float* b, float beta, float* c) {
  plain_gemm(shape, alpha, a, b, beta, c);
}

void gemm(const GemmShape& shape, double alpha, const double* a, const double* b, double beta, double* c) {
  plain_gemm(shape, alpha, a, b, beta, c);
}

}  // namespace weft::kernels::cpu
