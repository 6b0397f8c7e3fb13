// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>

// The engine's functions for emulated kernel code. Kernel files see it through the emulated cuda_runtime.h.

namespace emulator::source {

/// The source line of a barrier or collective. A line, not a program counter, names the call: a compiler may duplicate one
/// call.
struct SourceLine {
  const char* file;
  int line;
};

/// An operation that the lanes named by a mask do together. The last lane to arrive runs `apply` once for all of them:
/// `frames[lane]` is the argument block of that lane, on its own stack.
struct CollectiveOp {
  const char* name;
  void (*apply)(void** frames, uint32_t mask);
  /// True for __syncwarp: a lane's earlier accesses come before the others' later ones.
  bool orders_memory = false;
};

/// Parks the calling lane until every lane of `mask` has called with the same mask, operation and line.
void collective(const CollectiveOp& op, uint32_t mask, void* frame, SourceLine where);

enum class BarrierKind : uint8_t { sync, count, all, any };

/// Parks the calling thread until every thread of the block is here; combines the predicates.
int barrier(BarrierKind kind, int predicate, SourceLine where);

/// Lets another thread of the block run when scheduling is seeded (simt.h); otherwise does nothing.
void yield_when_seeded();

/// Ends the running kernel: the launch throws Fault with the block, the thread and `text`.
[[noreturn]] void fail_kernel(const char* text, SourceLine where);

/// Dynamic shared memory of the running block.
void* dynamic_shared();

/// Ends the kernel unless `address` is a multiple of `alignment`.
inline void check_aligned(const void* address, size_t alignment, SourceLine where) {
  if (reinterpret_cast<uintptr_t>(address) % alignment != 0) [[unlikely]]
    fail_kernel("misaligned access", where);
}

/// An atomic is about to touch memory: for the checked build.
void check_atomic(void* address, size_t bytes, SourceLine where);

/// Orders the thread's accesses before and after, as other threads see them.
void memory_fence(bool own_block_only);

}  // namespace emulator::source

/// A defaulted last parameter that records where the caller is.
#define WEFT_SIMT_HERE ::emulator::source::SourceLine where = {__builtin_FILE(), __builtin_LINE()}
