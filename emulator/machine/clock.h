// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <unordered_map>
#include <vector>

#include "emulator/machine/stamp.h"
#include "emulator/machine/view.h"

// The happens-before order of accesses, by the memory models of PTX and CUDA C++. Inside a block, barriers order all
// threads and __syncwarp the lanes of its mask. Shuffles, votes, ldmatrix and mma order nothing (CUDA C++ Programming
// Guide, warp shuffle and vote functions: "do not imply a memory barrier"). Everything else, above all two blocks of a
// launch, is ordered only where a thread releases and another acquires, on the same address. A release is a fence
// before a strong write or an atomic, or a release write. An acquire is a later atomic, acquire, or strong read before
// a fence. Launches are ordered.

namespace emulator {

struct Channel;

/// The scope of a fence or a release.
enum class Reach : uint8_t { none, block, cluster, device };

/// The releases that the threads of one block have acquired, in that order.
struct Acquired {
  struct Entry {
    uint32_t thread, tick;
    Reach reach;
    const Channel* channel;
    size_t first, count;  ///< the channel's releases with indices first … count - 1
    const Channel* only;  ///< the channel of all entries up to this, or nullptr
    size_t least;         ///< the least `first` of all entries up to this
  };
  uint32_t block = 0;
  std::vector<Entry> entries;
};

/// A fence of one thread. Its own accesses before `tick`, its warp's before `warp_floor` and its block's before
/// `block_floor` happen before the accesses after the fence.
struct Fence {
  uint32_t tick, block_floor, warp_floor;
  size_t acquired_count;
};

/// A strong write after a fence: the fence's order is passed on to an acquire at the same address.
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
  size_t first = 0;  ///< index of the first release that was not overwritten
  size_t closed = 0;  ///< earlier releases are by blocks that had acquired from this channel alone
  size_t closed_least = std::numeric_limits<size_t>::max();  ///< the first release that those had acquired
  std::vector<Release> releases;
  std::unordered_map<uint32_t, std::vector<uint32_t>> of_block;
};
using Channels = std::unordered_map<uintptr_t, std::unique_ptr<Channel>>;

/// One launch: the numbers of its blocks, and its channels. One OS thread runs all of its blocks.
class LaunchClock {
 public:
  /// `cluster`: blocks per cluster; their numbers are consecutive.
  LaunchClock(uint64_t blocks, uint32_t cluster);

  uint32_t first_block() const { return first_; }
  uint32_t blocks() const { return blocks_; }
  bool same_cluster(uint32_t a, uint32_t b) const { return (a - first_) / cluster_ == (b - first_) / cluster_; }
  /// Changes when block numbers restart: shadow memory must then be cleared.
  static uint32_t generation();

 private:
  friend class BlockClock;
  uint32_t first_, blocks_, cluster_;
  bool has_channels_ = false;
  Channels global_;
  std::deque<std::unique_ptr<Acquired>> acquired_;
  std::deque<std::unique_ptr<Channel>> ended_;  ///< channels in shared memory of blocks that have ended
};

/// Time in one block.
class BlockClock {
 public:
  /// `cluster_first`, `cluster_blocks`: the numbers of its cluster's blocks.
  void begin(LaunchClock& launch, uint32_t block, int threads, uint32_t cluster_first, uint32_t cluster_blocks);
  void end();

  uint32_t block() const { return block_; }
  LaunchClock& launch() const { return *launch_; }
  /// The stamp of an access now, without thread and kind.
  uint64_t now() {
    accessed_ = true;
    return now_;
  }
  uint32_t tick() const { return stamp::tick(now_); }
  /// While this value is unchanged, so are now() and the results of glance().
  uint64_t changes() const { return changes_; }
  /// After this, every access so far has a smaller tick.
  void advance() {
    if (accessed_ && tick() < stamp::kLastTick) set_tick(tick() + 1);
  }

  /// A fast happens-before test, also for vector instructions. Stamp s happens before a thread's access now if s is
  /// outside [from, from + span), i.e. by no running thread; or if s - own is in [0, floor), or in [0, warp_floor) for
  /// the same warp; or if s is by the same thread. `known`: stamps for which the full test succeeded. Stamps less than
  /// `common` above own happen before every thread's next access.
  struct Glance {
    int64_t from, span, own, floor, warp_floor, warp;
    int64_t known[2];
    bool exact;         ///< whether nothing else orders accesses
    bool blocks_exact;  ///< whether nothing orders accesses of other blocks
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
    // Views cover the cluster's blocks.
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
  /// Notes that the access with this stamp happens before all later accesses of the warp's lanes.
  void all_know(uint32_t warp_index, uint64_t s) {
    ++changes_;
    auto& known = known_stamps_[warp_index];
    known[1] = known[0];
    known[0] = static_cast<int64_t>(s & ~stamp::kWrote);
  }

  /// Whether the access to `address` with stamp `s` happens before the current access of `thread`.
  template <bool kShared>
  bool ordered(uint64_t s, int thread, uintptr_t address) const;

  /// Reads and updates `views` from now until the block ends.
  void use_views(Views* views) {
    ++changes_;
    views_ = views;
  }
  Views* views() const { return views_; }
  /// Adds all accesses that happen before the thread's next access, including its own, to `to`.
  void release(int thread, View& to);
  /// As above, for a relaxed arrival: adds only accesses that the thread's last fence ordered.
  void release_fenced(int thread, View& to);
  void acquire(int thread, const View& from) { view(thread).learn(from); }
  View& view(int thread) const { return views_->of_thread[static_cast<size_t>(thread)]; }
  /// Whether `view` contains an access in block `rank` of the cluster; for an access by several lanes, any of them
  /// suffices.
  bool in_view(const View& view, int rank, uint64_t s) const;

  void barrier();
  /// __syncwarp of the lanes of `mask`, a subset of the warp's `members`.
  void sync_warp(int warp, uint32_t mask, uint32_t members);
  void fence(int warp, uint32_t lanes, Reach reach);
  /// Lanes are about to write global memory.
  void global_writes(int warp, uint32_t lanes);

  /// A strong access of a thread to an address; call before the access is checked. `acquires` and `releases`: by the
  /// instruction's own semantics. An atomic operation reads and writes. It may acquire without a later fence: PTX does
  /// not guarantee this, but all GPUs do it. Channels in shared memory belong to the block that owns the memory.
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
  std::array<std::array<int64_t, 2>, kWarps> known_stamps_{};  ///< 0: none
  /// [warp][i][j]: accesses of lane j before this tick happen before lane i's next access. Used only if partial_.
  std::array<std::unique_ptr<Known>, kWarps> known_;

  std::vector<uint64_t> last_global_write_;  ///< per thread
  bool fenced_ = false;
  struct ThreadFences {
    Reach reach = Reach::none;  ///< scope of the last fence
    Fence last{}, at_device{};
    bool device = false;
  };
  std::vector<ThreadFences> fences_;
  /// Set by a barrier at which every thread arrives with its global writes fenced.
  bool published_ = false;
  Fence published_fence_{};
  Acquired* acquired_ = nullptr;
  Channels shared_channels_;
  /// Releases that a thread's strong reads have observed since its last fence.
  struct Seen {
    int thread;
    const Channel* channel;
    size_t first, count;
  };
  std::vector<Seen> seen_;
  /// Ticks of other blocks that happen before all threads of this block; cached by knows().
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
