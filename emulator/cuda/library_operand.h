// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "emulator/cuda/library.h"

// The bytes that a call of a mathematical library reads and writes. These libraries take pointers without sizes and
// leave undefined what happens when operands do not fit.

namespace emulator::cuda {

struct LibraryRange {
  uintptr_t begin, end;
};

struct LibraryOperand {
  std::string name;  ///< `A`, `the bias`
  const void* at;
  bool written;
  size_t alignment;                  ///< that the pointer must have
  std::vector<LibraryRange> ranges;  ///< sorted; none touches the next
  bool overlaps_itself = false;
  bool read_too = false;              ///< written and read
  std::vector<std::string> may_be{};  ///< operands that may lie at the same bytes
};

/// `lines` lines of `length` bytes, `step` bytes apart; `batches` of them, `batch_step` bytes apart.
LibraryOperand library_operand(const char* name, const void* at, bool written, size_t alignment, int64_t length,
                               int64_t lines, int64_t step, int64_t batches = 1, int64_t batch_step = 0);
/// Bytes without a gap.
LibraryOperand library_operand(const char* name, const void* at, bool written, size_t bytes);
/// From ranges in any order.
LibraryOperand library_operand(const char* name, const void* at, bool written, size_t alignment,
                               std::vector<LibraryRange> ranges);

struct LibraryCall {
  const char* library;  ///< `cuBLAS`: the kind of its findings
  std::string text;     ///< `cublasSgemm of 64x32x16 f32`
};

/// Thrown after a finding.
struct LibraryMisuse {};

/// Reports what a library leaves undefined as a finding, then throws LibraryMisuse.
[[noreturn]] void misused(const LibraryCall& call, const std::string& text);
/// Misuse: a pointer is NULL, not aligned, or not to this device's memory; or a written operand overlaps another.
void require_operands(const LibraryCall& call, const std::vector<LibraryOperand>& operands, int device);
/// Misuse: a pointer that must be the host's is to device memory.
void require_host(const LibraryCall& call, const char* name, const void* at);
/// For operands that are known only while the call runs, before it writes. Fault: the memory is gone. A finding: nobody
/// has written it.
void examine_late(const LibraryCall& call, const std::vector<LibraryOperand>& operands);
/// Puts the call into a stream, to run once or as often as a graph is launched. Operands are examined again then.
cudaError_t enqueue_library_call(cudaStream_t stream, const LibraryCall& call, std::vector<LibraryOperand> operands,
                                 std::function<void()> compute);

}  // namespace emulator::cuda
