// SPDX-License-Identifier: Apache-2.0
#include "emulator/ptx/check/standstill.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <mutex>
#include <thread>

namespace emulator::ptx {

namespace {

constexpr uint64_t kQuiet = 64;  // turns before a closer look
constexpr auto kPatience = std::chrono::seconds(2);

/// For all kernels of the process, on several GPUs perhaps.
struct Everybody {
  std::mutex mutex;
  std::vector<const Standstill*> all, standing;
  std::atomic<uint64_t> changes{0};  ///< counted during a suspicion
  std::atomic<int> suspects{0};

  static Everybody& get() {
    static Everybody* const everybody = new Everybody;
    return *everybody;
  }
};

void add(uint64_t& hash, const void* memory, size_t bytes) {
  const char* at = static_cast<const char*>(memory);
  for (uint64_t word; bytes >= sizeof(word); at += sizeof(word), bytes -= sizeof(word)) {
    std::memcpy(&word, at, sizeof(word));
    hash = std::rotl((hash ^ word) * 0x9e3779b97f4a7c15u, 29);
  }
}

/// All state that decides the threads' next steps, except memory that others see.
uint64_t state_of(const std::vector<std::unique_ptr<Cluster>>& clusters) {
  uint64_t hash = clusters.size();
  for (const auto& cluster : clusters)
    for (const auto& block : cluster->blocks)
      for (const Warp& w : block->warps) {
        if (w.groups.empty()) continue;
        for (const Group& group : w.groups) {
          const uint64_t words[] = {reinterpret_cast<uint64_t>(group.pc), uint64_t{group.mask} << 8 | static_cast<uint64_t>(group.state)};
          add(hash, words, sizeof(words));
        }
        add(hash, w.registers, w.kernel().register_bytes);
        for (uint32_t p = 0; p < w.kernel().predicates; ++p) hash = std::rotl((hash ^ w.predicates[p]) * 0x9e3779b97f4a7c15u, 29);
        add(hash, w.local, size_t{w.local_bytes} * kLanes);
        hash = (hash ^ w.carry) * 0x9e3779b97f4a7c15u;
      }
  return hash;
}

}  // namespace

Standstill::Standstill(Grid& grid) : grid_(grid) {
  Everybody& everybody = Everybody::get();
  const std::lock_guard lock(everybody.mutex);
  everybody.all.push_back(this);
  ++everybody.changes;
}

Standstill::~Standstill() {
  moved();
  Everybody& everybody = Everybody::get();
  const std::lock_guard lock(everybody.mutex);
  std::erase(everybody.all, this);
  ++everybody.changes;
}

void Standstill::moved() {
  Everybody& everybody = Everybody::get();
  if (everybody.suspects.load(std::memory_order_relaxed) != 0) ++everybody.changes;
  if (quiet_ >= kQuiet) {
    --everybody.suspects;
    grid_.suspected = false;
    const std::lock_guard lock(everybody.mutex);
    std::erase(everybody.standing, this);
    period_ = 0;
  }
  quiet_ = 0;
}

bool Standstill::is_final(const std::vector<std::unique_ptr<Cluster>>& clusters) {
  if (++quiet_ < kQuiet) return false;
  Everybody& everybody = Everybody::get();
  if (quiet_ == kQuiet) {
    ++everybody.suspects;
    grid_.suspected = true;
    next_save_ = quiet_ + 1;  // the turns so far may have been of random length
    return false;
  }
  const uint64_t changes = everybody.changes, state = state_of(clusters);
  const bool is_due = period_ == 0 || (quiet_ - saved_at_) % period_ == 0;
  const bool same = saved_at_ >= kQuiet && saved_ == state && saved_changes_ == changes;
  std::unique_lock lock(everybody.mutex);
  if (period_ == 0 && same) {
    period_ = quiet_ - saved_at_;
    since_ = Clock::now();
    everybody.standing.push_back(this);
  } else if (is_due && !same) {
    std::erase(everybody.standing, this);
    if (period_ != 0 || quiet_ >= next_save_) {
      saved_ = state;
      saved_changes_ = changes;
      saved_at_ = quiet_;
      next_save_ = 2 * quiet_;
    }
    period_ = 0;
  }
  if (period_ == 0) return false;
  const auto now = Clock::now();
  const bool final = !grid_.reads_host && everybody.standing.size() == everybody.all.size() && everybody.changes == saved_changes_ &&
         std::ranges::all_of(everybody.standing, [&](const Standstill* one) { return now - one->since_ >= kPatience; });
  lock.unlock();
  if (!final) std::this_thread::sleep_for(std::chrono::microseconds(100));
  return final;
}

namespace {

bool is_shared(const Warp& w, const char* at) {
  return std::ranges::any_of(w.block->cluster->blocks, [&](const auto& block) {
    return at >= block->shared && at < block->shared + block->shared_end;
  });
}

}  // namespace

void note_spin(const Warp& w, uint32_t lanes, char* const* at) {
  Grid& grid = *w.block->grid;
  for (; lanes != 0; lanes &= lanes - 1) {
    const char* const memory = at[std::countr_zero(lanes)];
    if (is_shared(w, memory) || (memory >= grid.sync_workspace && memory < grid.sync_workspace + Grid::kWorkspace)) continue;
    Allocation owner;
    const bool is_known = find_allocation(reinterpret_cast<uintptr_t>(memory), owner);
    if (!is_known || owner.kind == MemoryKind::pinned || owner.kind == MemoryKind::managed) grid.reads_host = true;
  }
}

}  // namespace emulator::ptx
