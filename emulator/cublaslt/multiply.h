// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <mutex>

#include "emulator/cublaslt/problem.h"

namespace emulator::lt {

/// alpha and beta as a call gave them: the values, or where they lie on the device.
struct Scalar {
  const std::byte* device = nullptr;
  double value = 0;
};

/// A cublasLtMatmul, or a part of a cublasLtMatrixTransform, that is ready to run.
struct Call {
  Problem problem;
  int splits = 1;
  Scalar alpha, beta;
  const std::byte *a = nullptr, *b = nullptr, *c = nullptr;
  std::byte *d = nullptr, *workspace = nullptr;
};

/// Reads a scalar of a type; `i`: of a vector, in elements.
double value_of(const Scalar& scalar, cudaDataType_t type, int64_t i = 0);

/// Computes D and the epilogue's other outputs. Sums are in the compute type, in an order that neither threads nor
/// alignment change.
void multiply(const Call& call);

}  // namespace emulator::lt
