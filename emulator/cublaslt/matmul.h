// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cublasLt.h>

#include <string>

#include "emulator/cublaslt/algorithm.h"
#include "emulator/cublaslt/operand.h"

namespace emulator::lt {

/// cublasLtMatmul's arguments beyond those that describe the problem.
struct Arguments {
  const void *alpha, *a, *b, *beta, *c;
  void *d, *workspace;
  size_t workspace_bytes;
  cudaStream_t stream;
};

/// Checks the call and puts it into the stream. `device`: the handle's.
void enqueue_matmul(const Problem& problem, const Algorithm& algorithm, const Arguments& arguments, int device);
/// C = alpha op(A) + beta op(B).
void enqueue_transform(const TransformDescriptor& what, const void* alpha, const void* a, const Layout* a_layout,
                       const void* beta, const void* b, const Layout* b_layout, void* c, const Layout& c_layout,
                       int device, cudaStream_t stream);

}  // namespace emulator::lt
