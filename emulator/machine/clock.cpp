// SPDX-License-Identifier: Apache-2.0
#include "emulator/machine/clock.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <limits>
#include <mutex>
#include <utility>

namespace emulator {

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

/// True when `tick` of `who`, in the block of `r`, comes before the fence of `r`.
bool before_fence(const Release& r, int who, uint32_t tick) {
  if (tick < r.fence.block_floor) return true;
  if (stamp::warp(who) != static_cast<int>(r.thread) / 32) return false;
  // Several lanes of a warp, and which one is unknown: a missed race is better than a false one.
  return tick < r.fence.warp_floor ||
         (tick < r.fence.tick && (who == static_cast<int>(r.thread) || stamp::is_some(who)));
}

/// Looks for an access in the releases of a channel, directly or through what their own threads had
/// acquired.
class Search {
 public:
  Search(const LaunchClock& launch, uint64_t s, uintptr_t address) : launch_(launch), s_(s), address_(address) {}

  /// In what was acquired by a thread of block `by`.
  bool operator()(const Acquired::Entry& entry, uint32_t by) {
    open_.push_back({entry, by});
    // A list, not recursion: thousands of blocks may form a chain.
    while (!open_.empty()) {
      const auto [next, block] = open_.back();
      open_.pop_back();
      if (look(next, block)) {
        open_.clear();
        return true;
      }
    }
    return false;
  }

  uint32_t block_floor = 0;  ///< floor of the release that was found

 private:
  bool look(const Acquired::Entry& entry, uint32_t by) {
    const Channel& channel = *entry.channel;
    const size_t count = entry.count;
    auto [known, is_new] = seen_.try_emplace(&channel, entry.first, entry.first);
    auto& [from, to] = known->second;
    if (!is_new && from <= entry.first && to >= count) return false;
    const size_t begin = is_new || from > entry.first ? entry.first : std::max(entry.first, to);
    from = std::min(from, entry.first);
    to = std::max(to, count);
    const int who = stamp::who(s_);
    const uint32_t tick = stamp::tick(s_);
    const auto of_block = channel.of_block.find(stamp::block(s_));
    if (of_block != channel.of_block.end())
      for (auto at = std::ranges::lower_bound(of_block->second, begin); at != of_block->second.end() && *at < count;
           ++at) {
        const Release& r = channel.releases[*at];
        if (!reaches(r, by, entry.reach)) continue;
        if (before_fence(r, who, tick)) {
          block_floor = tick < r.fence.block_floor ? r.fence.block_floor : 0;
          return true;
        }
        // The write that released is itself ordered, though it comes after its fence.
        if (stamp::strong(s_) && address_ - channel.address < 8 && static_cast<int>(r.thread) == who &&
            tick <= r.write_tick)
          return true;
      }
    // Mostly all that blocks acquired was in this channel, which has been looked at: many threads exchange one counter.
    const size_t closed = from <= channel.closed_least ? std::min(channel.closed, count) : 0;
    for (size_t i = std::max(begin, closed); i < count; ++i) {
      const Release& r = channel.releases[i];
      if (!r.acquired || r.fence.acquired_count == 0 || !reaches(r, by, entry.reach)) continue;
      const std::vector<Acquired::Entry>& all = r.acquired->entries;
      for (size_t k = 0; k < r.fence.acquired_count; ++k) {
        const Acquired::Entry& earlier = all[k];
        if (before_fence(r, static_cast<int>(earlier.thread), earlier.tick)) open_.push_back({earlier, r.block});
      }
    }
    return false;
  }

  bool reaches(const Release& r, uint32_t by, Reach reach) const {
    if (r.block == by) return true;
    const Reach narrow = std::min(r.reach, reach);
    return narrow == Reach::device || (narrow == Reach::cluster && launch_.same_cluster(r.block, by));
  }

  const LaunchClock& launch_;
  uint64_t s_;
  uintptr_t address_;
  std::unordered_map<const Channel*, std::pair<size_t, size_t>> seen_;
  std::vector<std::pair<Acquired::Entry, uint32_t>> open_;
};

}  // namespace

LaunchClock::LaunchClock(uint64_t blocks, uint32_t cluster)
    : blocks_(static_cast<uint32_t>(std::min<uint64_t>(blocks, stamp::kLastBlock - 1))), cluster_(cluster) {
  Numbers& n = numbers();
  const std::lock_guard lock(n.mutex);
  if (blocks_ > stamp::kLastBlock - n.next) {
    n.next = 1;
    ++n.generation;
  }
  first_ = n.next;
  n.next += blocks_;
}

uint32_t LaunchClock::generation() { return numbers().generation; }

void BlockClock::begin(LaunchClock& launch, uint32_t block, int threads, uint32_t cluster_first,
                       uint32_t cluster_blocks) {
  ++changes_;
  launch_ = &launch;
  block_ = block;
  cluster_first_ = cluster_first;
  cluster_blocks_ = cluster_blocks;
  threads_ = threads;
  accessed_ = fenced_ = published_ = false;
  now_ = stamp::make(block_, 0);
  block_floor_ = 0;
  warp_floor_.fill(0);
  partial_.fill(false);
  known_stamps_.fill({});
  last_global_write_.assign((static_cast<size_t>(threads) + 31) / 32 * 32, 0);
  acquired_ = nullptr;
  views_ = nullptr;
  seen_.clear();
  block_known_.clear();
}

void BlockClock::end() {
  for (auto& [address, channel] : shared_channels_) launch_->ended_.push_back(std::move(channel));
  shared_channels_.clear();
}

bool BlockClock::in_warp(uint64_t s, int thread) const {
  const size_t warp = static_cast<size_t>(thread) / 32;
  const uint32_t tick = stamp::tick(s);
  if (tick < warp_floor_[warp]) return true;
  if (!partial_[warp]) return false;
  const auto& known = (*known_[warp])[static_cast<size_t>(thread % 32)];
  const int who = stamp::who(s);
  if (stamp::is_all(who)) return std::ranges::all_of(known, [&](uint32_t k) { return tick < k; });
  if (stamp::is_some(who)) {
    for (int j = 0; j < 32; ++j)
      if (j != thread % 32 && tick < known[static_cast<size_t>(j)]) return true;
    return false;
  }
  return tick < known[static_cast<size_t>(who % 32)];
}

bool BlockClock::in_view(const View& view, int rank, uint64_t s) const {
  const int who = stamp::who(s);
  const uint32_t tick = stamp::tick(s);
  if (who < threads_ || proxy::is_proxy(who)) return tick < view.at(rank, who);
  if (!stamp::is_warp(who)) return false;
  const int first = stamp::thread(who), end = std::min(first + 32, threads_);
  for (int t = first; t < end; ++t)
    if ((tick < view.at(rank, t)) == stamp::is_some(who)) return stamp::is_some(who);
  return stamp::is_all(who);
}

void BlockClock::release(int thread, View& to) {
  advance();
  View& own = view(thread);
  const size_t warp = static_cast<size_t>(thread) / 32;
  // Knowledge gained in barriers goes into the view, from which others take it.
  const int first = thread / 32 * 32, lanes = std::min(32, threads_ - first);
  own.raise(views_->rank, 0, threads_, block_floor_);
  own.raise(views_->rank, first, lanes, warp_floor_[warp]);
  if (partial_[warp])
    for (int lane = 0; lane < lanes; ++lane)
      own.raise(views_->rank, first + lane, 1, (*known_[warp])[static_cast<size_t>(thread % 32)][static_cast<size_t>(lane)]);
  own.at(views_->rank, thread) = tick();
  to.learn(own);
}

void BlockClock::release_fenced(int thread, View& to) {
  if (!fenced_ || fences_[static_cast<size_t>(thread)].reach == Reach::none) return;
  const Fence& fence = fences_[static_cast<size_t>(thread)].last;
  for (int t = 0; t < threads_; ++t) {
    uint32_t known = fence.block_floor;
    if ((t ^ thread) < 32) known = std::max(known, fence.warp_floor);
    if (t == thread) known = std::max(known, fence.tick);
    uint32_t& tick = to.at(views_->rank, t);
    tick = std::max(tick, known);
  }
}

/// Threads first + i, for the bits i of `lanes`, learn what any of them knows.
void BlockClock::learn_together(int first, uint32_t lanes) {
  if (!views_) return;
  View& all = view(first + std::countr_zero(lanes));
  for (uint32_t rest = lanes & (lanes - 1); rest; rest &= rest - 1) all.learn(view(first + std::countr_zero(rest)));
  for (uint32_t rest = lanes & (lanes - 1); rest; rest &= rest - 1) view(first + std::countr_zero(rest)) = all;
}

void BlockClock::barrier() {
  ++changes_;
  advance();
  if (views_) [[unlikely]] {
    View& all = views_->of_thread[0];
    for (const View& view : views_->of_thread) all.learn(view);
    for (View& view : views_->of_thread) view = all;
  }
  // A block that has used up its ticks is no longer checked: all of it counts as ordered.
  block_floor_ = tick() == stamp::kLastTick ? stamp::kUnderWay : tick();
  partial_.fill(false);
  if (!fenced_) return;
  // All threads may fence and then one of them, after the barrier, runs the atomic for all.
  for (size_t t = 0; t < static_cast<size_t>(threads_); ++t) {
    const uint64_t write = last_global_write_[t];
    const ThreadFences& fences = fences_[t];
    if (stamp::block(write) == block_ && (!fences.device || stamp::tick(write) >= fences.at_device.tick)) return;
  }
  published_ = true;
  published_fence_ = {tick(), tick(), tick(), acquired_ ? acquired_->entries.size() : 0};
}

void BlockClock::sync_warp(int warp, uint32_t mask, uint32_t members) {
  ++changes_;
  advance();
  mask &= members;
  if (mask == 0) return;
  learn_together(warp * 32, mask);
  const size_t w = static_cast<size_t>(warp);
  if (tick() == stamp::kLastTick) {
    warp_floor_[w] = stamp::kUnderWay;
    return;
  }
  if (mask == members) {
    warp_floor_[w] = tick();
    partial_[w] = false;
    return;
  }
  if (!known_[w]) known_[w] = std::make_unique<Known>();
  Known& known = *known_[w];
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

Fence BlockClock::fence_now(int thread) const {
  const size_t warp = static_cast<size_t>(thread) / 32;
  // After a partial __syncwarp the warp counts as ordered: a missed race is better than a false one.
  return {tick(), block_floor_, partial_[warp] ? tick() : std::max(block_floor_, warp_floor_[warp]),
          acquired_ ? acquired_->entries.size() : 0};
}

void BlockClock::fence(int warp, uint32_t lanes, Reach reach) {
  advance();
  if (!fenced_) {
    fenced_ = true;
    fences_.assign(static_cast<size_t>(threads_), {});
  }
  // Earlier reads acquire now.
  if (!seen_.empty())
    std::erase_if(seen_, [&](const Seen& seen) {
      if (seen.thread / 32 != warp || (lanes >> seen.thread % 32 & 1) == 0) return false;
      take(*seen.channel, seen.first, seen.count, seen.thread, reach);
      return true;
    });
  advance();
  for (uint32_t left = lanes; left; left &= left - 1) {
    const int thread = warp * 32 + std::countr_zero(left);
    ThreadFences& fences = fences_[static_cast<size_t>(thread)];
    fences.last = fence_now(thread);
    fences.reach = reach;
    if (reach != Reach::device) continue;
    fences.device = true;
    fences.at_device = fences.last;
  }
}

void BlockClock::global_writes(int warp, uint32_t lanes) {
  uint64_t* const last = last_global_write_.data() + static_cast<size_t>(warp) * 32;
  const uint64_t now = this->now();
  if (lanes == ~0u) {
    for (int lane = 0; lane < 32; ++lane) last[lane] = now;
    return;
  }
  for (; lanes; lanes &= lanes - 1) last[std::countr_zero(lanes)] = now;
}

void BlockClock::take(const Channel& channel, size_t first, size_t count, int thread, Reach reach) {
  if (first == count) return;
  ++changes_;
  if (!acquired_) {
    launch_->acquired_.push_back(std::make_unique<Acquired>());
    acquired_ = launch_->acquired_.back().get();
    acquired_->block = block_;
  }
  const uint32_t by = static_cast<uint32_t>(thread);
  // Several threads may poll one after another, and each poll acquires the same releases.
  constexpr size_t kTurns = 64;
  const size_t entries = acquired_->entries.size();
  for (size_t i = entries; i > 0 && entries - i < kTurns; --i) {
    const Acquired::Entry& earlier = acquired_->entries[i - 1];
    if (earlier.thread == by && earlier.channel == &channel && earlier.count == count && earlier.reach >= reach) return;
  }
  const Channel* only = &channel;
  size_t least = first;
  if (!acquired_->entries.empty()) {
    const Acquired::Entry& last = acquired_->entries.back();
    if (last.only != &channel) only = nullptr;
    least = std::min(least, last.least);
  }
  acquired_->entries.push_back({by, tick(), reach, &channel, first, count, only, least});
  accessed_ = true;
}

void BlockClock::give(Channels& channels, uintptr_t address, int thread, const Fence& fence, Reach reach) {
  std::unique_ptr<Channel>& channel = channels[address];
  if (!channel) {
    channel = std::make_unique<Channel>();
    channel->address = address;
    launch_->has_channels_ = true;
  }
  if (channel->releases.size() > channel->first) {
    // Nothing has been fenced since: the same release goes on.
    Release& last = channel->releases.back();
    if (last.block == block_ && static_cast<int>(last.thread) == thread && last.fence.tick == fence.tick &&
        last.reach == reach) {
      last.write_tick = tick();
      return;
    }
  }
  const Acquired::Entry* const known =
      acquired_ && fence.acquired_count != 0 ? &acquired_->entries[fence.acquired_count - 1] : nullptr;
  if (channel->closed == channel->releases.size() && (!known || known->only == channel.get())) {
    ++channel->closed;
    if (known) channel->closed_least = std::min(channel->closed_least, known->least);
  }
  channel->of_block[block_].push_back(static_cast<uint32_t>(channel->releases.size()));
  channel->releases.push_back({block_, static_cast<uint32_t>(thread), tick(), reach, fence, acquired_});
}

void BlockClock::strong(uintptr_t address, BlockClock* owner_of_shared, int thread, const Strong& access) {
  if (!fenced_ && !launch_->has_channels_ && !access.releases) return;
  Channels& channels = owner_of_shared ? owner_of_shared->shared_channels_ : launch_->global_;
  const auto found = channels.find(address);
  if (found != channels.end()) {
    Channel& channel = *found->second;
    if (access.reads) {
      const size_t count = channel.releases.size();
      if (access.acquires || access.writes) {
        take(channel, channel.first, count, thread, access.acquires ? access.reach : Reach::device);
      } else {
        std::erase_if(seen_, [&](const Seen& s) { return s.thread == thread && s.channel == &channel; });
        seen_.push_back({thread, &channel, channel.first, count});
      }
    } else {
      channel.first = channel.releases.size();  // who reads from now on does not see those
    }
  }
  if (!access.writes) return;
  if (access.releases) {
    advance();
    give(channels, address, thread, fence_now(thread), access.reach);
    return;
  }
  if (!fenced_) return;
  const ThreadFences& fences = fences_[static_cast<size_t>(thread)];
  if (fences.device || published_) {
    Fence fence = fences.device ? fences.at_device : published_fence_;
    if (published_) {
      fence.block_floor = std::max(fence.block_floor, published_fence_.block_floor);
      fence.acquired_count = std::max(fence.acquired_count, published_fence_.acquired_count);
    }
    give(channels, address, thread, fence, access.reach);
  }
  if (fences.reach != Reach::none && fences.reach != Reach::device)
    give(channels, address, thread, fences.last, std::min(fences.reach, access.reach));
}

bool BlockClock::visible(const Acquired::Entry& entry, int thread) const {
  const int by = static_cast<int>(entry.thread);
  if (by == thread || entry.tick < block_floor_) return true;
  const size_t warp = static_cast<size_t>(thread) / 32;
  if (by / 32 == thread / 32 &&
      (entry.tick < warp_floor_[warp] ||
       (partial_[warp] &&
        entry.tick < (*known_[warp])[static_cast<size_t>(thread % 32)][static_cast<size_t>(by % 32)])))
    return true;
  return views_ && entry.tick < view(thread).at(views_->rank, by);
}

bool BlockClock::knows(uint64_t s, int thread, uintptr_t address) const {
  if (!acquired_) return false;
  const uint32_t from = stamp::block(s);
  const auto known = block_known_.find(from);
  if (known != block_known_.end() && stamp::tick(s) < known->second) return true;
  Search search(*launch_, s, address);
  for (auto entry = acquired_->entries.rbegin(); entry != acquired_->entries.rend(); ++entry) {
    if (!visible(*entry, thread) || !search(*entry, block_)) continue;
    if (entry->tick < block_floor_ && search.block_floor != 0) {
      uint32_t& floor = block_known_[from];
      floor = std::max(floor, search.block_floor);
    }
    return true;
  }
  return false;
}

}  // namespace emulator
