// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace emulator {

/// An access's thread, time and kind in 63 bits: the number of the block (26 bits, unique over launches), the block's
/// tick (22), how (3), and who in the block (12). 0 is nobody: blocks count from 1. The sign bit stays 0, so that rows
/// of stamps are compared by the vector instructions of signed numbers.
///
/// A block's tick advances at barriers, __syncwarp, fences and the like, if memory was accessed since the last one:
/// "before the barrier" is "at a smaller tick".
namespace stamp {

inline constexpr int kHowShift = 12, kTickShift = 15, kTickBits = 22, kBlockShift = kTickShift + kTickBits;
inline constexpr uint32_t kLastBlock = (1u << (63 - kBlockShift)) - 1;
/// Work under way has this tick: it is before nothing.
inline constexpr uint32_t kUnderWay = (1u << kTickBits) - 1, kLastTick = kUnderWay - 1;
inline constexpr uint64_t kWhoMask = (1u << kHowShift) - 1;
inline constexpr uint64_t kBlockMask = ~uint64_t{0} << kBlockShift;

/// How: `strong` accesses (atomic, volatile, relaxed, …) do not race with each other, if each one's scope reaches the
/// other: `narrow` is one of the block only. `wrote` tells writes from reads.
inline constexpr uint64_t kStrong = 1u << kHowShift, kWrote = 2u << kHowShift, kNarrow = 4u << kHowShift;

// Who.
inline constexpr int kThreads = 1024;
inline constexpr int kCopies = kThreads;       ///< + thread: its cp.async
inline constexpr int kWarps = 2 * kThreads;    ///< + 32 * warp: all of its lanes, or with 1 more several of them
inline constexpr int kProxies = 3 * kThreads;  ///< + number: TMA or wgmma, see view.h
/// The warp of a thread (not of a proxy).
inline constexpr uint64_t kWarpMask = kThreads - 32;
constexpr int warp_all(int warp) { return kWarps + 32 * warp; }
constexpr int warp_some(int warp) { return warp_all(warp) + 1; }
constexpr bool is_warp(int who) { return who >= kWarps && who < kProxies; }
constexpr bool is_all(int who) { return is_warp(who) && who % 32 == 0; }
constexpr bool is_some(int who) { return is_warp(who) && who % 32 != 0; }

constexpr uint64_t make(uint32_t block, uint32_t tick) {
  return uint64_t{block} << kBlockShift | uint64_t{tick} << kTickShift;
}
constexpr uint32_t block(uint64_t s) { return static_cast<uint32_t>(s >> kBlockShift); }
constexpr uint32_t tick(uint64_t s) { return static_cast<uint32_t>(s >> kTickShift) & kUnderWay; }
constexpr int who(uint64_t s) { return static_cast<int>(s & kWhoMask); }
constexpr bool strong(uint64_t s) { return s & kStrong; }
constexpr bool wrote(uint64_t s) { return s & kWrote; }
constexpr bool under_way(uint64_t s) { return tick(s) == kUnderWay; }

/// A thread to name for who: its own, the first of a warp, or -1 of a proxy.
constexpr int thread(int who) {
  if (who < kWarps) return who % kThreads;
  return who < kProxies ? static_cast<int>(static_cast<uint64_t>(who) & kWarpMask) : -1;
}
constexpr int warp(int who) { return who < kProxies ? who % kThreads / 32 : -1; }

/// 3: different blocks, 2: different warps or proxies, 1: different lanes of a warp, 0: one thread.
constexpr int distance(uint64_t a, uint64_t b) {
  if (block(a) != block(b)) return 3;
  if (who(a) == who(b)) return is_warp(who(a)) ? 1 : 0;
  return warp(who(a)) == warp(who(b)) && warp(who(a)) >= 0 ? 1 : 2;
}

}  // namespace stamp
}  // namespace emulator
