// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulator/machine/stamp.h"

namespace emulator {

// Knowledge per thread. Blocks need it where only some threads take part in a barrier (mbarrier, named barrier,
// cluster), and where TMA or wgmma read or write.

/// Proxies: they access memory on a thread's behalf, in the block whose shared memory it is.
namespace proxy {

inline constexpr int kLoads = 56, kStores = 32, kWarpgroups = 8, kCount = kLoads + kStores + kWarpgroups;
/// The copies that complete on mbarrier `number` of the block: only threads that wait for that one know of them.
constexpr int load(int number) { return stamp::kProxies + number % kLoads; }
/// The stores that a warp's threads have issued.
constexpr int store(int warp) { return stamp::kProxies + kLoads + warp; }
constexpr int warpgroup(int group) { return stamp::kProxies + kLoads + kStores + group; }
constexpr bool is_load(int who) { return who >= stamp::kProxies && who < store(0); }
constexpr bool is_store(int who) { return who >= store(0) && who < warpgroup(0); }
constexpr bool is_proxy(int who) { return who >= stamp::kProxies; }

}  // namespace proxy

/// For each block of the cluster and each of its threads and proxies: accesses before this tick are known.
class View {
 public:
  void reset(size_t blocks, size_t threads) {
    threads_ = (threads + 31) / 32 * 32;
    ticks_.assign(blocks * (threads_ + proxy::kCount), 0);
  }
  bool empty() const { return ticks_.empty(); }
  /// `who`: a thread or a proxy.
  uint32_t& at(int rank, int who) { return ticks_[index(rank, who)]; }
  uint32_t at(int rank, int who) const { return ticks_[index(rank, who)]; }
  /// Threads `first` and `count - 1` more of a block are known at least until `tick`.
  void raise(int rank, int first, int count, uint32_t tick) {
    uint32_t* const ticks = &ticks_[index(rank, first)];
    for (int t = 0; t < count; ++t) ticks[t] = std::max(ticks[t], tick);
  }
  void learn(const View& other) {
    const uint32_t* const from = other.ticks_.data();
    uint32_t* const to = ticks_.data();
    for (size_t i = 0; i < ticks_.size(); ++i) to[i] = std::max(to[i], from[i]);
  }

 private:
  size_t index(int rank, int who) const {
    const size_t number = static_cast<size_t>(who);
    return static_cast<size_t>(rank) * (threads_ + proxy::kCount) +
           (number < threads_ ? number : threads_ + number - stamp::kProxies);
  }
  size_t threads_ = 0;
  std::vector<uint32_t> ticks_;
};

/// Knowledge that a barrier passes on: from arrivals in this phase, to waiters for the last one.
struct Handover {
  View arriving, ended;

  void reset(size_t blocks, size_t threads) {
    arriving.reset(blocks, threads);
    ended.reset(blocks, threads);
  }
};

/// For all threads of a block.
struct Views {
  int rank = 0;
  uint32_t first_block = 0, blocks = 1;  ///< the cluster's blocks as stamps number them: by rank
  std::vector<View> of_thread;

  /// -1 of a block of another cluster.
  int rank_of(uint32_t block) const {
    return block - first_block < blocks ? static_cast<int>(block - first_block) : -1;
  }
};

}  // namespace emulator
