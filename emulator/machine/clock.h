// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "emulator/machine/stamp.h"
#include "emulator/machine/view.h"

// The order of accesses: the memory model of PTX and of CUDA C++. Inside a block, barriers order all of its
// threads and __syncwarp the lanes of its mask. Shuffles, votes, ldmatrix and mma order nothing (CUDA C++ Programming
// Guide, warp shuffle and vote functions: "do not imply a memory barrier"). Everything else, above all two blocks of a
// launch, is ordered only where one thread releases and another acquires: a fence before a strong write or an atomic
// (or a write that is itself a release), and a later atomic, acquire, or strong read before a fence, on the same
// address. Launches are ordered.

namespace emulator {

struct Channel;

/// How far a fence or a release reaches.
enum class Reach : uint8_t { none, block, cluster, device };

/// The releases that the threads of one block have acquired, in that order.
struct Acquired {
  struct Entry {
    uint32_t thread, tick;
    Reach reach;
    const Channel* channel;
    size_t first, count;  ///< of the channel's releases, those from `first` to before `count`
  };
  uint32_t block = 0;
  std::vector<Entry> entries;
};

/// A fence as one thread ran it: its own accesses before `tick`, its warp's before `warp_floor` and its block's before
/// `block_floor` come before what follows the fence.
struct Fence {
  uint32_t tick, block_floor, warp_floor;
  size_t acquired_count;
};

/// A strong write after a fence: an acquire at the same address then knows what the fence ordered.
struct Release {
  uint32_t block, thread;
  uint32_t write_tick;
  Reach reach;
  Fence fence;
  const Acquired* acquired;
};

/// The releases on one address.
struct Channel {
  uintptr_t address;
  size_t first = 0;  ///< those before were overwritten
  std::vector<Release> releases;
  std::unordered_map<uint32_t, std::vector<uint32_t>> of_block;
};
using Channels = std::unordered_map<uintptr_t, std::unique_ptr<Channel>>;

/// One launch: the numbers of its blocks, and its channels. One OS thread runs all of its blocks.
class LaunchClock {
 public:
  /// `cluster`: blocks of a cluster, whose numbers follow each other.
  LaunchClock(uint64_t blocks, uint32_t cluster);

  uint32_t first_block() const { return first_; }
  uint32_t blocks() const { return blocks_; }
  bool same_cluster(uint32_t a, uint32_t b) const { return (a - first_) / cluster_ == (b - first_) / cluster_; }
  /// Changes when the numbers of blocks have begun anew: shadow memory must be forgotten.
  static uint32_t generation();

 private:
  friend class BlockClock;
  uint32_t first_, blocks_, cluster_;
  bool has_channels_ = false;
  Channels global_;
  std::deque<std::unique_ptr<Acquired>> acquired_;
  std::deque<std::unique_ptr<Channel>> ended_;  ///< of the shared memory of blocks that have ended
};

/// Time in one block.
class BlockClock {
 public:
  /// `cluster_first`, `cluster_blocks`: the numbers of its cluster's blocks.
  void begin(LaunchClock& launch, uint32_t block, int threads, uint32_t cluster_first, uint32_t cluster_blocks);
  void end();

  uint32_t block() const { return block_; }
  LaunchClock& launch() const { return *launch_; }
  /// The stamp of an access at this moment, without who and how.
  uint64_t now() {
    accessed_ = true;
    return now_;
  }
  uint32_t tick() const { return stamp::tick(now_); }
  /// As long as this stays, so do now() and what glance() gives.
  uint64_t changes() const { return changes_; }
  /// After this, every access so far has a smaller tick.
  void advance() {
    if (accessed_ && tick() < stamp::kLastTick) set_tick(tick() + 1);
  }

  /// A quick test for ordered stamps, also for vector instructions. A stamp s is before what a thread of a warp does now
  /// when s - from is negative or not less than span (nobody who runs now did it), or when s - own is from 0 to less
  /// than floor, or of the same warp less than warp_floor, or when it is the same thread's. `known` are stamps that a
  /// closer look has found to be before. What is at less than `common` from own is before whatever anybody does now.
  struct Glance {
    int64_t from, span, own, floor, warp_floor, warp;
    int64_t known[2];
    bool exact;         ///< nothing else orders accesses
    bool blocks_exact;  ///< nothing orders those of another block
    int64_t common;
    bool settled(uint64_t s) const {
      return dead(s) || ((s & stamp::kProxies) != stamp::kProxies &&
                         s - static_cast<uint64_t>(own) < static_cast<uint64_t>(common));
    }
    bool dead(uint64_t s) const { return s - static_cast<uint64_t>(from) >= static_cast<uint64_t>(span); }
    [[gnu::always_inline]] bool operator()(uint64_t s, uint64_t now) const {
      if (dead(s)) return true;
      const uint64_t mine = s - static_cast<uint64_t>(own);
      if ((s & stamp::kProxies) != stamp::kProxies) [[likely]] {
        if (mine < static_cast<uint64_t>(floor)) return true;
        if (mine < static_cast<uint64_t>(warp_floor) && static_cast<int64_t>(s & stamp::kWarpMask) == warp) return true;
      }
      if (((s ^ now) & (stamp::kBlockMask | stamp::kWhoMask)) == 0) return true;
      const int64_t plain = static_cast<int64_t>(s & ~stamp::kWrote);
      return plain == known[0] || plain == known[1];
    }
  };
  template <bool kShared>
  Glance glance(uint32_t warp_index) const {
    const uint64_t from = stamp::make(kShared ? cluster_first_ : launch_->first_, 0);
    const uint64_t span = stamp::make(kShared ? cluster_blocks_ : launch_->blocks_, 0);
    const auto& known = known_stamps_[warp_index];
    const bool alone = (kShared ? cluster_blocks_ : launch_->blocks_) == 1;
    // Views know of the cluster's blocks.
    const bool blocks_exact = (!views_ || cluster_blocks_ == 1) && !acquired_;
    return {static_cast<int64_t>(from),
            static_cast<int64_t>(span),
            static_cast<int64_t>(stamp::make(block_, 0)),
            static_cast<int64_t>(stamp::make(0, block_floor_)),
            static_cast<int64_t>(stamp::make(0, warp_floor_[warp_index])),
            static_cast<int64_t>(warp_index) * 32,
            {known[0], known[1]},
            !views_ && !acquired_ && !partial_[warp_index],
            blocks_exact,
            static_cast<int64_t>(stamp::make(0, alone ? block_floor_ : 0))};
  }
  /// All lanes of a warp know of this stamp's access; that stays so.
  void all_know(uint32_t warp_index, uint64_t s) {
    ++changes_;
    auto& known = known_stamps_[warp_index];
    known[1] = known[0];
    known[0] = static_cast<int64_t>(s & ~stamp::kWrote);
  }

  /// True when an access to `address` that was stamped `s` comes before what `thread` does now.
  template <bool kShared>
  bool ordered(uint64_t s, int thread, uintptr_t address) const;

  /// From here on `views` is looked at and kept; until the block ends.
  void use_views(Views* views) {
    ++changes_;
    views_ = views;
  }
  Views* views() const { return views_; }
  /// Adds what the thread knows now, including its own accesses, to `to`.
  void release(int thread, View& to);
  /// The same for a relaxed arrival: adds only what the thread's last fence ordered.
  void release_fenced(int thread, View& to);
  void acquire(int thread, const View& from) { view(thread).learn(from); }
  View& view(int thread) const { return views_->of_thread[static_cast<size_t>(thread)]; }
  /// Whether an access in block `rank` of the cluster is known there: one by several lanes of a warp if any of them is.
  bool in_view(const View& view, int rank, uint64_t s) const;

  void barrier();
  /// __syncwarp of the lanes of `mask`, which are all `members` of the warp or some of them.
  void sync_warp(int warp, uint32_t mask, uint32_t members);
  void fence(int warp, uint32_t lanes, Reach reach);
  /// Lanes are about to write global memory.
  void global_writes(int warp, uint32_t lanes);

  /// A strong access of a thread to an address, before it is checked. `acquires` and `releases`: by its own spelling.
  /// An atomic operation reads and writes; that it may acquire without a fence after it is more than PTX promises, and
  /// what all GPUs do. Channels of shared memory belong to the block whose memory it is.
  struct Strong {
    bool reads, writes, acquires, releases;
    Reach reach;
  };
  void strong(uintptr_t address, BlockClock* owner_of_shared, int thread, const Strong& access);

 private:
  static constexpr size_t kWarps = 32;
  using Known = std::array<std::array<uint32_t, 32>, 32>;

  bool in_warp(uint64_t s, int thread) const;
  bool knows(uint64_t s, int thread, uintptr_t address) const;
  void set_tick(uint32_t tick) {
    ++changes_;
    now_ = stamp::make(block_, tick);
    accessed_ = false;
  }
  void learn_together(int first, uint32_t lanes);
  void take(const Channel& channel, size_t first, size_t count, int thread, Reach reach);
  void give(Channels& channels, uintptr_t address, int thread, const Fence& fence, Reach reach);
  bool visible(const Acquired::Entry& entry, int thread) const;
  Fence fence_now(int thread) const;

  LaunchClock* launch_ = nullptr;
  uint32_t block_ = 0, cluster_first_ = 0, cluster_blocks_ = 1;
  int threads_ = 0;
  Views* views_ = nullptr;
  bool accessed_ = false;
  uint64_t now_ = 0, changes_ = 0;
  uint32_t block_floor_ = 0;
  std::array<uint32_t, kWarps> warp_floor_{};
  std::array<bool, kWarps> partial_{};
  std::array<std::array<int64_t, 2>, kWarps> known_stamps_{};  ///< 0: nobody's
  /// [warp][i][j]: what lane j did before this tick comes before what lane i does now. Only where partial_.
  std::array<std::unique_ptr<Known>, kWarps> known_;

  std::vector<uint64_t> last_global_write_;  ///< by thread
  bool fenced_ = false;
  struct ThreadFences {
    Reach reach = Reach::none;  ///< of the last fence
    Fence last{}, at_device{};
    bool device = false;
  };
  std::vector<ThreadFences> fences_;
  /// Set by a barrier that every thread reaches with its global writes fenced.
  bool published_ = false;
  Fence published_fence_{};
  Acquired* acquired_ = nullptr;
  Channels shared_channels_;
  /// What strong reads of a thread have seen since its last fence.
  struct Seen {
    int thread;
    const Channel* channel;
    size_t first, count;
  };
  std::vector<Seen> seen_;
  /// What all threads of this block know of another block's: found once by knows().
  mutable std::unordered_map<uint32_t, uint32_t> block_known_;
};

template <bool kShared>
inline bool BlockClock::ordered(uint64_t s, int thread, uintptr_t address) const {
  const uint32_t from = stamp::block(s);
  if (kShared ? from - cluster_first_ >= cluster_blocks_ : from - launch_->first_ >= launch_->blocks_) return true;
  if (stamp::under_way(s)) return false;
  const int by = stamp::who(s);
  if (from == block_ && !proxy::is_proxy(by)) {
    if (by == thread || stamp::tick(s) < block_floor_) return true;
    if (stamp::warp(by) == thread / 32 && in_warp(s, thread)) return true;
  }
  if (views_) [[unlikely]]
    if (const int rank = views_->rank_of(from); rank >= 0 && in_view(view(thread), rank, s)) return true;
  if (proxy::is_proxy(by)) return false;
  return knows(s, thread, address);
}

}  // namespace emulator
