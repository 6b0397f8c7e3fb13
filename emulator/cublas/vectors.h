// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "emulator/cublas/request.h"

// Level 1. `name`: of the call, for reports. `type` is that of the arithmetic.

namespace emulator::blas {

struct Given {
  const void* at;
  cudaDataType_t type;
};

/// y += alpha x.
void axpy(const char* name, cublasHandle_t handle, Given alpha, const Vector& x, const Vector& y, cudaDataType_t type);
/// x *= alpha.
void scal(const char* name, cublasHandle_t handle, Given alpha, const Vector& x, cudaDataType_t type);
/// The sum of x y, or of conj(x) y.
void dot(const char* name, cublasHandle_t handle, const Vector& x, const Vector& y, Given result, bool conjugates);
enum class Norm { euclidean, absolute };
void norm(const char* name, cublasHandle_t handle, const Vector& x, Given result, Norm which);
/// The first index, from 1, of the largest or smallest |Re| + |Im|; 0: none.
void index_of(const char* name, cublasHandle_t handle, const Vector& x, void* result, size_t bytes, bool largest);
void copy(const char* name, cublasHandle_t handle, const Vector& x, const Vector& y);
void swap(const char* name, cublasHandle_t handle, const Vector& x, const Vector& y);
/// x, y = c x + s y, c y - conj(s) x.
void rot(const char* name, cublasHandle_t handle, const Vector& x, const Vector& y, Given c, Given s,
         cudaDataType_t type);

}  // namespace emulator::blas
