// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "emulator/source/stamp.h"
#include "emulator/source/view.h"

// The order of accesses: the memory model of CUDA C++ as far as kernels here use it. Inside a block, barriers
// order all of its threads and __syncwarp the lanes of its mask. Shuffles, votes, ldmatrix and mma order nothing (CUDA
// C++ Programming Guide, warp shuffle and vote functions: "do not imply a memory barrier"). Everything else, above all
// two blocks of a launch, is ordered only by a fence before an atomic and a later atomic on the same address. Launches
// are ordered.

namespace emulator::source {

struct Channel;

/// The releases that the threads of one block have acquired through atomics, in that order.
struct Acquired {
  struct Entry {
    uint32_t thread, tick;
    const Channel* channel;
    size_t count;  // of the channel's releases
  };
  std::vector<Entry> entries;
};

/// A fence as one thread ran it: its own accesses before `tick`, its warp's before `warp_floor` and its block's before
/// `block_floor` come before what follows the fence.
struct Fence {
  uint32_t tick, block_floor, warp_floor;
  size_t acquired_count;
};

/// An atomic after a fence: a later atomic on the same address then knows what the fence ordered.
struct Release {
  uint32_t block, thread;
  uint32_t atomic_tick;
  bool own_block_only;
  Fence fence;
  const Acquired* acquired;
};

/// The releases on one address.
struct Channel {
  uintptr_t address;
  std::vector<Release> releases;
  std::unordered_map<uint32_t, std::vector<uint32_t>> of_block;
};

/// One launch: the numbers of its blocks, and its channels.
class LaunchClock {
 public:
  explicit LaunchClock(uint64_t blocks);

  uint32_t first_block() const { return first_; }
  uint32_t blocks() const { return blocks_; }
  /// Changes when the numbers of blocks have begun anew: shadow memory must be forgotten.
  static uint32_t generation();

 private:
  friend class BlockClock;
  uint32_t first_, blocks_;
  std::atomic<bool> has_channels_{false};
  std::mutex mutex_;  // of what follows, with all that it owns
  std::unordered_map<uintptr_t, std::unique_ptr<Channel>> global_;
  std::deque<std::unique_ptr<Channel>> shared_;  // kept for references to them
  std::deque<std::unique_ptr<Acquired>> acquired_;
};

/// Time in the running block.
class BlockClock {
 public:
  void begin(LaunchClock& launch, uint64_t block, int threads);

  uint32_t block() const { return block_; }
  LaunchClock& launch() const { return *launch_; }
  /// The stamp of an access by `thread` at this moment.
  uint64_t now(int thread) {
    accessed_ = true;
    return now_ | static_cast<uint32_t>(thread);
  }
  uint32_t tick() const { return stamp::tick(now_); }
  void advance();

  /// True when an access to `address` that was stamped `s` comes before what `thread` does now.
  template <bool kShared>
  bool ordered(uint64_t s, int thread, uintptr_t address) const {
    const uint32_t from = stamp::block(s);
    if (views_) [[unlikely]]
      if (const int rank = views_->rank_of(from); rank >= 0) {
        const int by = stamp::thread(s);
        if (stamp::tick(s) < views_->of_thread[static_cast<size_t>(thread)].at(rank, by)) return true;
        if (from != block_) return kShared ? false : knows(s, thread, address);
        if (by >= proxy::kFirst && by >= threads_) return false;  // no barrier of threads waits for it
      }
    if (from != block_) {
      if (kShared || from - first_ >= blocks_) return true;
      return knows(s, thread, address);
    }
    const int by = stamp::thread(s);
    const uint32_t tick = stamp::tick(s);
    if (by == thread || tick < block_floor_) return true;
    if ((by ^ thread) < 32) {
      const size_t warp = static_cast<size_t>(thread) / 32;
      if (tick < warp_floor_[warp]) return true;
      if (partial_[warp] && tick < known_[warp][thread % 32][by % 32]) return true;
    }
    return knows(s, thread, address);
  }

  /// From here on `views` is looked at and kept; until the block ends.
  void use_views(Views* views) { views_ = views; }
  const Views* views() const { return views_; }
  /// False for what happened in shared memory before this block, or this cluster, began.
  bool is_live(uint32_t block) const { return block == block_ || (views_ && views_->rank_of(block) >= 0); }
  /// Adds what the thread knows now, including its own accesses, to `to`.
  void release(int thread, View& to);
  void acquire(int thread, const View& from) { views_->of_thread[static_cast<size_t>(thread)].learn(from); }
  /// A proxy's stamp; everything done until now is before it.
  uint64_t proxy_stamp(int proxy) {
    advance();
    return now(proxy);
  }

  void barrier();
  /// __syncwarp of the lanes of `mask`, which are all `members` of the warp or some of them.
  void sync_warp(int warp, uint32_t mask, uint32_t members);
  void fence(int thread, bool own_block_only);
  /// The thread is about to write global memory.
  void global_write(uint64_t now) { last_global_write_[stamp::thread(now)] = now; }
  /// An atomic releases what a fence of this thread ordered, and acquires others' releases. Asked before the access is
  /// checked; in the block's own shared memory that is all.
  void atomic(uintptr_t address, bool shared, int thread);
  /// In global memory another block, on another OS thread, may come later and still run its atomic first. So all is
  /// exchanged (again) together with the atomic, which happens between these two: meanwhile no other atomic that releases
  /// anything runs. In between this clock must not be used.
  void atomic_begins(uintptr_t address, int thread);
  void atomic_ends();

 private:
  static constexpr size_t kThreads = 1024, kWarps = 32;

  bool knows(uint64_t s, int thread, uintptr_t address) const;
  void set_tick(uint32_t tick);
  void learn_together(int first, uint32_t lanes);
  bool may_exchange() const { return fenced_ || launch_->has_channels_.load(std::memory_order_relaxed); }
  Channel* channel_of(uintptr_t address, bool shared) const;
  void take(const Channel* channel, int thread);
  void give(Channel* channel, uintptr_t address, bool shared, int thread);

  LaunchClock* launch_ = nullptr;
  uint32_t block_ = 0, first_ = 0, blocks_ = 0;
  int threads_ = 0;
  Views* views_ = nullptr;
  bool accessed_ = false;
  uint64_t now_ = 0;
  uint32_t block_floor_ = 0;
  std::array<uint32_t, kWarps> warp_floor_{};
  std::array<bool, kWarps> partial_{};
  /// [warp][i][j]: what lane j did before this tick comes before what lane i does now. Only where partial_.
  std::vector<std::array<std::array<uint32_t, 32>, 32>> known_{kWarps};

  std::array<uint64_t, kThreads> last_global_write_{};
  bool fenced_ = false;
  struct ThreadFences {
    bool device, own_block;
    Fence at_device, at_own_block;
  };
  std::vector<ThreadFences> fences_;
  /// Set by a barrier that every thread reaches with its global writes fenced.
  bool published_ = false;
  Fence published_fence_{};
  Acquired* acquired_ = nullptr;
  std::unordered_map<uintptr_t, Channel*> shared_channels_;
  struct {
    uintptr_t address;
    int thread;
  } begun_{};                                ///< the atomic of atomic_begins
  std::unique_lock<std::mutex> exchanging_;  ///< of launch_->mutex_
};

}  // namespace emulator::source
