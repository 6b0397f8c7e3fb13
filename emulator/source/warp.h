// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstring>
#include <type_traits>

#include "emulator/source/kernel_api.h"

// Barriers and warp collectives of CUDA C++. Part of the emulated cuda_runtime.h.

namespace emulator::source {

struct ShuffleFrame {
  uint64_t value;
  int operand;
  int width;
};
extern const CollectiveOp kShuffle, kShuffleUp, kShuffleDown, kShuffleXor;

/// Frame of votes, matches and integer reductions: the operand going in, the result coming out.
struct VoteFrame {
  uint64_t value;
  int predicate;
};
extern const CollectiveOp kSyncWarp, kBallot, kAny, kAll, kMatchAny, kMatchAll;
extern const CollectiveOp kReduceAddSigned, kReduceMinSigned, kReduceMaxSigned;
extern const CollectiveOp kReduceMinUnsigned, kReduceMaxUnsigned, kReduceAnd, kReduceOr, kReduceXor;

template <class T>
T shuffle(const CollectiveOp& op, unsigned mask, T value, int operand, int width, SourceLine where) {
  static_assert(std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8), "shuffles move 4 or 8 bytes");
  ShuffleFrame frame{0, operand, width};
  __builtin_memcpy(&frame.value, &value, sizeof(T));
  collective(op, mask, &frame, where);
  __builtin_memcpy(&value, &frame.value, sizeof(T));
  return value;
}

inline uint64_t vote(const CollectiveOp& op, unsigned mask, uint64_t value, SourceLine where) {
  VoteFrame frame{value, 0};
  collective(op, mask, &frame, where);
  return frame.value;
}

}  // namespace emulator::source

namespace emulator::source::api {

inline void __syncthreads(WEFT_SIMT_HERE) { barrier(BarrierKind::sync, 0, where); }
inline int __syncthreads_count(int predicate, WEFT_SIMT_HERE) { return barrier(BarrierKind::count, predicate, where); }
inline int __syncthreads_and(int predicate, WEFT_SIMT_HERE) { return barrier(BarrierKind::all, predicate, where); }
inline int __syncthreads_or(int predicate, WEFT_SIMT_HERE) { return barrier(BarrierKind::any, predicate, where); }
inline void __syncwarp(unsigned mask = 0xffffffffu, WEFT_SIMT_HERE) { collective(kSyncWarp, mask, nullptr, where); }

template <class T>
T __shfl_sync(unsigned mask, T value, int lane, int width = 32, WEFT_SIMT_HERE) {
  return shuffle(kShuffle, mask, value, lane, width, where);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, WEFT_SIMT_HERE) {
  return shuffle(kShuffleUp, mask, value, static_cast<int>(delta), width, where);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, WEFT_SIMT_HERE) {
  return shuffle(kShuffleDown, mask, value, static_cast<int>(delta), width, where);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32, WEFT_SIMT_HERE) {
  return shuffle(kShuffleXor, mask, value, lane_mask, width, where);
}

inline unsigned __ballot_sync(unsigned mask, int predicate, WEFT_SIMT_HERE) {
  return static_cast<unsigned>(vote(kBallot, mask, predicate != 0, where));
}
inline int __any_sync(unsigned mask, int predicate, WEFT_SIMT_HERE) {
  return static_cast<int>(vote(kAny, mask, predicate != 0, where));
}
inline int __all_sync(unsigned mask, int predicate, WEFT_SIMT_HERE) {
  return static_cast<int>(vote(kAll, mask, predicate != 0, where));
}

template <class T>
unsigned __match_any_sync(unsigned mask, T value, WEFT_SIMT_HERE) {
  uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof(T));
  return static_cast<unsigned>(vote(kMatchAny, mask, bits, where));
}
template <class T>
unsigned __match_all_sync(unsigned mask, T value, int* predicate, WEFT_SIMT_HERE) {
  VoteFrame frame{0, 0};
  __builtin_memcpy(&frame.value, &value, sizeof(T));
  collective(kMatchAll, mask, &frame, where);
  *predicate = frame.predicate;
  return static_cast<unsigned>(frame.value);
}

#define WEFT_SIMT_REDUCE(name, T, op)                                           \
  inline T name(unsigned mask, T value, WEFT_SIMT_HERE) {                       \
    return static_cast<T>(vote(op, mask, static_cast<unsigned>(value), where)); \
  }
WEFT_SIMT_REDUCE(__reduce_add_sync, int, kReduceAddSigned)
WEFT_SIMT_REDUCE(__reduce_add_sync, unsigned, kReduceAddSigned)
WEFT_SIMT_REDUCE(__reduce_min_sync, int, kReduceMinSigned)
WEFT_SIMT_REDUCE(__reduce_min_sync, unsigned, kReduceMinUnsigned)
WEFT_SIMT_REDUCE(__reduce_max_sync, int, kReduceMaxSigned)
WEFT_SIMT_REDUCE(__reduce_max_sync, unsigned, kReduceMaxUnsigned)
WEFT_SIMT_REDUCE(__reduce_and_sync, unsigned, kReduceAnd)
WEFT_SIMT_REDUCE(__reduce_or_sync, unsigned, kReduceOr)
WEFT_SIMT_REDUCE(__reduce_xor_sync, unsigned, kReduceXor)
#undef WEFT_SIMT_REDUCE

inline void __threadfence() { memory_fence(false); }
inline void __threadfence_block() { memory_fence(true); }
inline void __threadfence_system() { memory_fence(false); }

}  // namespace emulator::source::api
