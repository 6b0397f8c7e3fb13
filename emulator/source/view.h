// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace emulator::source {

// The knowledge of single threads, for blocks with barriers that only some of their threads meet (mbarrier, named barriers,
// clusters) and with writers that are no threads (TMA, wgmma).

/// Proxies: the numbers above those of threads. They access memory on a thread's behalf, in the block whose shared
/// memory it is.
namespace proxy {

inline constexpr int kFirst = 960, kStore = 1015, kWarpgroup = 1016;
/// The loads that complete on mbarrier `number`: only threads that wait for that one know of them.
constexpr int load(int number) { return kFirst + number % (kStore - kFirst); }
constexpr int warpgroup(int group) { return kWarpgroup + group; }
constexpr bool is_load(int thread) { return thread >= kFirst && thread < kStore; }

}  // namespace proxy

/// For each block of the cluster and each of its threads: what it did before this tick is known.
class View {
 public:
  static constexpr size_t kThreads = 1024;

  void reset(size_t blocks) { ticks_.assign(blocks * kThreads, 0); }
  bool empty() const { return ticks_.empty(); }
  uint32_t& at(int rank, int thread) { return ticks_[index(rank, thread)]; }
  uint32_t at(int rank, int thread) const { return ticks_[index(rank, thread)]; }
  void learn(const View& other) {
    const uint32_t* const from = other.ticks_.data();
    uint32_t* const to = ticks_.data();
    for (size_t i = 0; i < ticks_.size(); ++i) to[i] = to[i] < from[i] ? from[i] : to[i];
  }

 private:
  static size_t index(int rank, int thread) {
    return static_cast<size_t>(rank) * kThreads + static_cast<size_t>(thread);
  }
  std::vector<uint32_t> ticks_;
};

/// Knowledge that a barrier passes on: from arrivals in this phase, to waiters for the last one.
struct Handover {
  View arriving, ended;

  void reset(size_t blocks) {
    arriving.reset(blocks);
    ended.reset(blocks);
  }
};

/// Of all threads of a block.
struct Views {
  int rank = 0;
  std::vector<uint32_t> blocks;  ///< of the cluster, by rank, as stamps number them
  std::vector<View> of_thread;
  std::vector<uint32_t> fenced;  ///< by fence.proxy.async: what the thread wrote before this tick

  int rank_of(uint32_t block) const {
    for (size_t r = 0; r < blocks.size(); ++r)
      if (blocks[r] == block) return static_cast<int>(r);
    return -1;
  }
};

}  // namespace emulator::source
