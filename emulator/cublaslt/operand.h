// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "emulator/cublaslt/problem.h"
#include "emulator/cuda/library_operand.h"

namespace emulator::lt {

using Operand = cuda::LibraryOperand;

/// The bytes of a batch of matrices.
Operand operand(const char* name, const void* at, bool written, size_t alignment, const Matrix& matrix,
                int64_t batches);

}  // namespace emulator::lt
