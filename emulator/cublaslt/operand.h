// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "emulator/cublaslt/problem.h"
#include "emulator/cuda/library.h"

// The bytes that a call reads and writes: cuBLASLt takes pointers without their sizes and leaves undefined what
// happens when they do not fit.

namespace emulator::lt {

struct Range {
  uintptr_t begin, end;
};

struct Operand {
  std::string name;  ///< `A`, `the bias`
  const void* at;
  bool written;
  size_t alignment;           ///< that the pointer must have
  std::vector<Range> ranges;  ///< sorted; none touches the next
  bool overlaps_itself = false;
};

/// The bytes of a batch of matrices.
Operand operand(const char* name, const void* at, bool written, size_t alignment, const Matrix& matrix,
                int64_t batches);
/// For contiguous elements.
Operand operand(const char* name, const void* at, bool written, size_t bytes);

/// `call` names it: `cublasLtMatmul of 64x32x16 bf16`. A finding, and Failure, if a pointer is NULL, not aligned, or
/// not to this device's memory, or if a written operand overlaps another. C may be D itself.
void require_operands(const std::string& call, const std::vector<Operand>& operands, int device, bool c_is_d);
/// Again when the call runs, since the program's memory may have changed. Fault: it is gone. A finding: nobody has written it.
void examine_at_run(const std::string& call, const std::vector<Operand>& operands);
std::vector<cuda::LibraryWork::Access> accesses_of(const std::vector<Operand>& operands);

/// Reports what the library leaves undefined as a finding, then throws Failure.
[[noreturn]] void undefined(const std::string& call, const std::string& text);

}  // namespace emulator::lt
