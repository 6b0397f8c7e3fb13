// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace emulator::source {

/// Who accessed memory, and when, in 64 bits: the number of the block (32 bits, unique over launches), the block's tick
/// (21), whether the access was atomic (1), and the thread in its block (10). 0 is nobody: blocks count from 1.
///
/// A block's tick advances at barriers, __syncwarp and fences, if memory was accessed since the last one: "before the
/// barrier" is "at a smaller tick".
namespace stamp {

inline constexpr int kTickShift = 11, kTickBits = 21;
inline constexpr uint32_t kLastTick = (1u << kTickBits) - 1;
inline constexpr uint64_t kAtomic = 1u << 10;
inline constexpr uint32_t kThreadMask = kAtomic - 1;

constexpr uint64_t make(uint32_t block, uint32_t tick) { return uint64_t{block} << 32 | uint64_t{tick} << kTickShift; }
constexpr uint32_t block(uint64_t s) { return static_cast<uint32_t>(s >> 32); }
constexpr uint32_t tick(uint64_t s) { return static_cast<uint32_t>(s) >> kTickShift; }
constexpr int thread(uint64_t s) { return static_cast<int>(s & kThreadMask); }
constexpr bool atomic(uint64_t s) { return s & kAtomic; }

/// 3: different blocks, 2: different warps, 1: different lanes of a warp, 0: one thread.
constexpr int distance(uint64_t a, uint64_t b) {
  if (block(a) != block(b)) return 3;
  const uint64_t threads = (a ^ b) & kThreadMask;
  return threads >= 32 ? 2 : threads != 0;
}

}  // namespace stamp
}  // namespace emulator::source
