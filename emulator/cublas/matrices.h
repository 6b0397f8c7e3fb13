// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "emulator/cublas/request.h"

// Levels 2 and 3, except products of whole matrices (gemm.h). `type`: of all matrices and vectors, alpha and beta
// unless named otherwise. `hermitian`: the other triangle is the conjugate.

namespace emulator::blas {

struct Triangle {
  cublasFillMode_t fill;
  cublasOperation_t op = CUBLAS_OP_N;
  cublasDiagType_t diagonal = CUBLAS_DIAG_NON_UNIT;
};
/// A matrix or vector argument: where, and its leading dimension or step.
struct Argument {
  const void* at;
  int64_t step, batch = 0;
};

struct Gemv {
  cublasOperation_t op;
  int64_t m, n;
  Argument a, x, y;
  cudaDataType_t a_type, y_type, scale;
  int64_t batches = 1;
  bool by_pointers = false;  ///< a, x and y are arrays of pointers
};
void gemv(const char* name, cublasHandle_t handle, const Gemv& what, const void* alpha, const void* beta);
void ger(const char* name, cublasHandle_t handle, int64_t m, int64_t n, const void* alpha, Argument x, Argument y,
         Argument a, cudaDataType_t type, bool conjugates);
void symv(const char* name, cublasHandle_t handle, cublasFillMode_t fill, int64_t n, const void* alpha, Argument a,
          Argument x, const void* beta, Argument y, cudaDataType_t type, bool hermitian);
/// A += alpha x x^T. `scale`: alpha's type.
void syr(const char* name, cublasHandle_t handle, cublasFillMode_t fill, int64_t n, const void* alpha, Argument x,
         Argument a, cudaDataType_t type, cudaDataType_t scale, bool hermitian);
/// A += alpha x y^T + alpha y x^T.
void syr2(const char* name, cublasHandle_t handle, cublasFillMode_t fill, int64_t n, const void* alpha, Argument x,
          Argument y, Argument a, cudaDataType_t type, bool hermitian);
/// x = op(A) x, or the solution of op(A) x' = x.
void trmv(const char* name, cublasHandle_t handle, Triangle t, int64_t n, Argument a, Argument x, cudaDataType_t type,
          bool solves);

void symm(const char* name, cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t fill, int64_t m, int64_t n,
          const void* alpha, Argument a, Argument b, const void* beta, Argument c, cudaDataType_t type, bool hermitian);
enum class Rank { one, with_b, both };  ///< A A^T; A B^T; A B^T + B A^T
struct RankK {
  Rank rank;
  cublasFillMode_t fill;
  cublasOperation_t op;
  int64_t n, k;
  Argument a, b, c;
  cudaDataType_t type, alpha_type, beta_type;
  bool hermitian;
};
void rank_k(const char* name, cublasHandle_t handle, const RankK& what, const void* alpha, const void* beta);
struct Trsm {
  cublasSideMode_t side;
  Triangle triangle;
  int64_t m, n;
  Argument a, b, c;  ///< c: the product's; a solution replaces B
  cudaDataType_t type;
  bool solves;
  int64_t batches = 1;
  bool by_pointers = false;
};
void trsm(const char* name, cublasHandle_t handle, const Trsm& what, const void* alpha);
void geam(const char* name, cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int64_t m, int64_t n,
          const void* alpha, Argument a, const void* beta, Argument b, Argument c, cudaDataType_t type);
void dgmm(const char* name, cublasHandle_t handle, cublasSideMode_t side, int64_t m, int64_t n, Argument a, Argument x,
          Argument c, cudaDataType_t type);

}  // namespace emulator::blas
