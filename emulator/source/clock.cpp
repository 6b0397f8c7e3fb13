// SPDX-License-Identifier: Apache-2.0
#include "emulator/source/clock.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

namespace emulator::source {

namespace {

struct Numbers {
  std::mutex mutex;
  uint32_t next = 1;
  std::atomic<uint32_t> generation{0};
};
Numbers& numbers() {
  static Numbers& numbers = *new Numbers;
  return numbers;
}

/// True when `tick` of `thread`, in the block of `r`, comes before the fence of `r`.
bool before_fence(const Release& r, uint32_t thread, uint32_t tick) {
  return tick < r.fence.block_floor || (tick < r.fence.warp_floor && thread / 32 == r.thread / 32) ||
         (tick < r.fence.tick && thread == r.thread);
}

/// Looks for an access in the first `count` releases of a channel, directly or through what their own
/// threads had acquired.
class Search {
 public:
  Search(uint64_t s, uintptr_t address, uint32_t asking_block) : s_(s), address_(address), asking_(asking_block) {}

  bool operator()(const Channel& channel, size_t count) {
    size_t& seen = seen_[&channel];
    if (seen >= count) return false;
    const uint32_t thread = static_cast<uint32_t>(stamp::thread(s_)), tick = stamp::tick(s_);
    const auto of_block = channel.of_block.find(stamp::block(s_));
    if (of_block != channel.of_block.end())
      for (const uint32_t i : of_block->second) {
        if (i >= count) break;
        const Release& r = channel.releases[i];
        if (r.own_block_only && r.block != asking_) continue;
        if (before_fence(r, thread, tick)) return true;
        // The atomic that released is itself ordered, though it comes after its fence.
        if (stamp::atomic(s_) && address_ - channel.address < 8 && r.thread == thread && tick <= r.atomic_tick)
          return true;
      }
    const size_t begin = std::exchange(seen, count);
    for (size_t i = begin; i < count; ++i) {
      const Release& r = channel.releases[i];
      if (!r.acquired || (r.own_block_only && r.block != asking_)) continue;
      for (size_t k = 0; k < r.fence.acquired_count; ++k) {
        const Acquired::Entry& entry = r.acquired->entries[k];
        if (before_fence(r, entry.thread, entry.tick) && (*this)(*entry.channel, entry.count)) return true;
      }
    }
    return false;
  }

 private:
  uint64_t s_;
  uintptr_t address_;
  uint32_t asking_;
  std::unordered_map<const Channel*, size_t> seen_;
};

}  // namespace

LaunchClock::LaunchClock(uint64_t blocks) : blocks_(static_cast<uint32_t>(blocks)) {
  Numbers& n = numbers();
  std::lock_guard lock(n.mutex);
  if (blocks > std::numeric_limits<uint32_t>::max() - n.next) {
    n.next = 1;
    ++n.generation;
  }
  first_ = n.next;
  n.next += blocks_;
}

uint32_t LaunchClock::generation() { return numbers().generation; }

void BlockClock::begin(LaunchClock& launch, uint64_t block, int threads) {
  launch_ = &launch;
  first_ = launch.first_;
  blocks_ = launch.blocks_;
  block_ = first_ + static_cast<uint32_t>(block);
  threads_ = threads;
  accessed_ = fenced_ = published_ = false;
  now_ = stamp::make(block_, 0);
  block_floor_ = 0;
  warp_floor_.fill(0);
  partial_.fill(false);
  acquired_ = nullptr;
  views_ = nullptr;
  if (!shared_channels_.empty()) shared_channels_.clear();
}

void BlockClock::set_tick(uint32_t tick) {
  now_ = stamp::make(block_, tick);
  accessed_ = false;
}

/// After this, every access so far has a smaller tick.
void BlockClock::advance() {
  if (accessed_ && tick() < stamp::kLastTick) set_tick(tick() + 1);
}

void BlockClock::release(int thread, View& to) {
  advance();
  View& own = views_->of_thread[static_cast<size_t>(thread)];
  const size_t warp = static_cast<size_t>(thread) / 32;
  // Knowledge gained in barriers goes into the view, from which others take it.
  for (int t = 0; t < threads_; ++t) {
    uint32_t known = block_floor_;
    if ((t ^ thread) < 32) {
      known = std::max(known, warp_floor_[warp]);
      if (partial_[warp]) known = std::max(known, known_[warp][thread % 32][t % 32]);
    }
    uint32_t& tick = own.at(views_->rank, t);
    tick = std::max(tick, known);
  }
  own.at(views_->rank, thread) = tick();
  to.learn(own);
}

/// Threads first + i, for the bits i of `lanes`, learn what any of them knows.
void BlockClock::learn_together(int first, uint32_t lanes) {
  if (!views_) return;
  View& all = views_->of_thread[static_cast<size_t>(first + std::countr_zero(lanes))];
  for (uint32_t rest = lanes; rest; rest &= rest - 1)
    all.learn(views_->of_thread[static_cast<size_t>(first + std::countr_zero(rest))]);
  for (uint32_t rest = lanes & (lanes - 1); rest; rest &= rest - 1)
    views_->of_thread[static_cast<size_t>(first + std::countr_zero(rest))] = all;
}

void BlockClock::barrier() {
  advance();
  if (views_) [[unlikely]] {
    View& all = views_->of_thread[0];
    for (const View& view : views_->of_thread) all.learn(view);
    for (View& view : views_->of_thread) view = all;
  }
  // A block that has used up its ticks is no longer checked: all of it counts as ordered.
  block_floor_ = tick() == stamp::kLastTick ? std::numeric_limits<uint32_t>::max() : tick();
  partial_.fill(false);
  if (!fenced_) return;
  // All threads may fence and then one of them, after the barrier, runs the atomic for all.
  for (int t = 0; t < threads_; ++t) {
    const uint64_t write = last_global_write_[static_cast<size_t>(t)];
    const ThreadFences& fences = fences_[static_cast<size_t>(t)];
    if (stamp::block(write) == block_ && (!fences.device || stamp::tick(write) >= fences.at_device.tick)) return;
  }
  published_ = true;
  published_fence_ = {tick(), tick(), tick(), acquired_ ? acquired_->entries.size() : 0};
}

void BlockClock::sync_warp(int warp, uint32_t mask, uint32_t members) {
  advance();
  learn_together(warp * 32, mask);
  const size_t w = static_cast<size_t>(warp);
  if (tick() == stamp::kLastTick) {
    warp_floor_[w] = std::numeric_limits<uint32_t>::max();
    return;
  }
  if (mask == members) {
    warp_floor_[w] = tick();
    partial_[w] = false;
    return;
  }
  auto& known = known_[w];
  if (!partial_[w]) {
    partial_[w] = true;
    for (auto& row : known) row.fill(std::max(block_floor_, warp_floor_[w]));
  }
  // Each lane of the mask learns what any of them knew, and all that they did until now.
  std::array<uint32_t, 32> all{};
  for (uint32_t lanes = mask; lanes; lanes &= lanes - 1) {
    const auto& row = known[static_cast<size_t>(std::countr_zero(lanes))];
    for (size_t j = 0; j < 32; ++j) all[j] = std::max(all[j], row[j]);
  }
  for (size_t j = 0; j < 32; ++j)
    if ((mask >> j) & 1u) all[j] = tick();
  for (uint32_t lanes = mask; lanes; lanes &= lanes - 1) known[static_cast<size_t>(std::countr_zero(lanes))] = all;
}

void BlockClock::fence(int thread, bool own_block_only) {
  advance();
  if (!fenced_) {
    fenced_ = true;
    fences_.assign(static_cast<size_t>(threads_), {});
  }
  const size_t warp = static_cast<size_t>(thread) / 32;
  // After a partial __syncwarp the warp counts as ordered: a missed race is better than a false one.
  const Fence fence{tick(), block_floor_, partial_[warp] ? tick() : std::max(block_floor_, warp_floor_[warp]),
                    acquired_ ? acquired_->entries.size() : 0};
  ThreadFences& fences = fences_[static_cast<size_t>(thread)];
  fences.own_block = true;
  fences.at_own_block = fence;
  if (own_block_only) return;
  fences.device = true;
  fences.at_device = fence;
}

Channel* BlockClock::channel_of(uintptr_t address, bool shared) const {
  if (shared) {
    const auto found = shared_channels_.find(address);
    return found == shared_channels_.end() ? nullptr : found->second;
  }
  const auto found = launch_->global_.find(address);
  return found == launch_->global_.end() ? nullptr : found->second.get();
}

void BlockClock::take(const Channel* channel, int thread) {
  if (!channel) return;
  if (!acquired_) {
    launch_->acquired_.push_back(std::make_unique<Acquired>());
    acquired_ = launch_->acquired_.back().get();
  }
  const uint32_t by = static_cast<uint32_t>(thread);
  const size_t count = channel->releases.size();
  if (!acquired_->entries.empty()) {
    const Acquired::Entry& last = acquired_->entries.back();
    if (last.channel == channel && last.thread == by && last.count == count) return;
  }
  acquired_->entries.push_back({by, tick(), channel, count});
  accessed_ = true;
}

void BlockClock::give(Channel* channel, uintptr_t address, bool shared, int thread) {
  if (!fenced_) return;
  const ThreadFences& fences = fences_[static_cast<size_t>(thread)];
  const auto release = [&](const Fence& fence, bool own_block_only) {
    if (!channel) {
      auto made = std::make_unique<Channel>();
      made->address = address;
      channel = made.get();
      if (shared) {
        launch_->shared_.push_back(std::move(made));
        shared_channels_[address] = channel;
      } else {
        launch_->global_[address] = std::move(made);
      }
      launch_->has_channels_ = true;
    }
    channel->of_block[block_].push_back(static_cast<uint32_t>(channel->releases.size()));
    channel->releases.push_back({block_, static_cast<uint32_t>(thread), tick(), own_block_only, fence, acquired_});
  };
  if (fences.device || published_) {
    Fence fence = fences.device ? fences.at_device : published_fence_;
    if (published_) {
      fence.block_floor = std::max(fence.block_floor, published_fence_.block_floor);
      fence.acquired_count = std::max(fence.acquired_count, published_fence_.acquired_count);
    }
    release(fence, false);
  }
  if (fences.own_block && (!fences.device || fences.at_own_block.tick > fences.at_device.tick))
    release(fences.at_own_block, true);
}

void BlockClock::atomic(uintptr_t address, bool shared, int thread) {
  if (!may_exchange()) return;
  const std::lock_guard lock(launch_->mutex_);
  Channel* const channel = channel_of(address, shared);
  take(channel, thread);
  if (shared) give(channel, address, shared, thread);
}

void BlockClock::atomic_begins(uintptr_t address, int thread) {
  begun_ = {address, thread};
  if (!may_exchange()) return;
  exchanging_ = std::unique_lock(launch_->mutex_);
  Channel* const channel = channel_of(address, false);
  take(channel, thread);
  give(channel, address, false, thread);
}

void BlockClock::atomic_ends() {
  if (exchanging_) {
    exchanging_ = {};
  } else if (may_exchange()) {  // another thread has published meanwhile: ours may be out of date
    const std::lock_guard lock(launch_->mutex_);
    take(channel_of(begun_.address, false), begun_.thread);
  }
}

bool BlockClock::knows(uint64_t s, int thread, uintptr_t address) const {
  if (!acquired_) return false;
  std::lock_guard lock(launch_->mutex_);
  Search search(s, address, block_);
  for (auto entry = acquired_->entries.rbegin(); entry != acquired_->entries.rend(); ++entry) {
    const bool mine = static_cast<int>(entry->thread) == thread;
    const bool same_warp = static_cast<int>(entry->thread) / 32 == thread / 32;
    const size_t warp = static_cast<size_t>(thread) / 32;
    const bool visible = mine || entry->tick < block_floor_ || (same_warp && entry->tick < warp_floor_[warp]) ||
                         (same_warp && partial_[warp] && entry->tick < known_[warp][thread % 32][entry->thread % 32]);
    if (visible && search(*entry->channel, entry->count)) return true;
  }
  return false;
}

}  // namespace emulator::source
