// SPDX-License-Identifier: Apache-2.0
#include "emulator/ptx/check/checker.h"

#include <algorithm>
#include <bit>

#include "emulator/machine/fresh.h"
#include "emulator/machine/options.h"
#include "emulator/ptx/time/profile.h"

namespace emulator::ptx {

namespace {

Reach reach_of(Scope scope) {
  return scope == Scope::cta ? Reach::block : scope == Scope::cluster ? Reach::cluster : Reach::device;
}
bool acquires(Order order) { return order == Order::acquire || order == Order::acq_rel || order == Order::sc; }
bool releases(Order order) { return order == Order::release || order == Order::acq_rel || order == Order::sc; }
uintptr_t number(const void* address) { return reinterpret_cast<uintptr_t>(address); }

const char* verb(const AccessNote& note) {
  if (note.atomic) return "atomic access";
  if (note.order == Order::weak) return note.write ? "write" : "read";
  if (note.order == Order::volatile_) return note.write ? "volatile write" : "volatile read";
  return note.write ? "strong write" : "strong read";
}

/// The lanes of an access by address.
struct SameAddress {
  int groups = 0;
  uint32_t lanes[kLanes];

  explicit SameAddress(const AccessNote& note) {
    if (note.lanes == kAllLanes && note.addresses && is_ascending(note.addresses)) return;
    groups = 0;
    constexpr size_t kSlots = 64;
    uint8_t slots[kSlots];
    std::memset(slots, 0xff, sizeof(slots));
    uintptr_t at[kLanes], last = 0;
    int found = 0;
    for (uint32_t left = note.lanes; left != 0; left &= left - 1) {
      const int lane = std::countr_zero(left);
      const uintptr_t address = number(note.at(lane));
      const uint32_t bit = 1u << lane;
      if (groups != 0 && address == last) {
        lanes[found] |= bit;
        continue;
      }
      last = address;
      size_t slot = (address >> 2 ^ address >> 8) % kSlots;
      while (slots[slot] != 0xff && at[slots[slot]] != address) slot = (slot + 1) % kSlots;
      if (slots[slot] == 0xff) {
        slots[slot] = static_cast<uint8_t>(groups);
        at[groups] = address;
        lanes[groups++] = 0;
      }
      found = slots[slot];
      lanes[found] |= bit;
    }
  }

 private:
  /// As tiles are read: addresses that never fall, again and again for each 1st, 2nd, 4th, … part of the warp.
  bool is_ascending(char* const* addresses) {
    int period = kLanes;
    uint32_t each = 1;  // lane 0 of each part
    for (; period > 1; period /= 2) {
      uintptr_t differ = 0;
      for (int lane = 0; lane < period / 2; ++lane)
        differ |= number(addresses[lane]) ^ number(addresses[lane + period / 2]);
      if (differ != 0) break;
      each |= each << period / 2;
    }
    uintptr_t last = 0;
    for (int lane = 0; lane < period; ++lane) {
      const uintptr_t address = number(addresses[lane]);
      if (address < last) return false;
      if (address != last) lanes[groups++] = 0;
      lanes[groups - 1] |= each << lane;
      last = address;
    }
    return true;
  }
};

}  // namespace

LaunchChecks::LaunchChecks(const Launch& launch)
    : races(options().check_races),
      fresh(options().check_uninitialised),
      clock(launch.grid.count(), static_cast<uint32_t>(launch.cluster.count())) {}

void begin_checks(Grid& grid) {
  if (!options().check_races && !options().check_uninitialised) return;
  grid.checks = std::make_shared<LaunchChecks>(*grid.launch);
  grid.checked = true;
}

void begin_checks(Cluster& cluster) {
  for (const auto& block : cluster.blocks) block->checks = std::make_shared<BlockChecks>(*block);
}

void note_access(Warp& w, const Instruction* i, const AccessNote& note) {
  if (LaunchProfile* const profile = w.block->grid->profile) profile->access(w, i, note);
  if (w.block->checks) w.block->checks->access(w, i, note);
}
void note_fence(Warp& w, const FenceNote& note) {
  if (BlockChecks* const checks = race_checks_of(*w.block)) checks->fence(w, note);
}
void note_sync_warp(Warp& w, uint32_t lanes) {
  if (BlockChecks* const checks = race_checks_of(*w.block))
    checks->clock().sync_warp(static_cast<int>(w.index), lanes, ~w.exited);
}

BlockChecks::BlockChecks(Block& block) : block_(block), launch_(*block.grid->checks) {
  begin(launch_.clock, block.cluster->number, block.grid->cluster_blocks, block.rank, block.threads);
  if (!launch_.fresh) return;
  mark_fresh(block.shared + kSharedBase, block.shared_end - kSharedBase);
  if (const uint32_t scratch = block.grid->kernel->scratch) mark_written(block.shared + scratch, kScratchBytes);
  for (const Warp& w : block.warps) mark_fresh(w.local, size_t{w.local_bytes} * kLanes);
}

BlockChecks::~BlockChecks() {
  end();
  if (!launch_.fresh) return;
  // The memory gets a new owner.
  mark_written(block_.shared + kSharedBase, block_.shared_end - kSharedBase);
  for (const Warp& w : block_.warps) mark_written(w.local, size_t{w.local_bytes} * kLanes);
}

Site BlockChecks::site(const Instruction* i) const { return static_cast<Site>(i - block_.grid->kernel->code.data()); }

void BlockChecks::access(Warp& w, const Instruction* i, const AccessNote& note) {
  if (note.space != Space::global && note.space != Space::shared && note.space != Space::local) return;
  if (note.lanes == 0) return;
  if (launch_.fresh) fresh(w, i, note);
  if (!launch_.races || note.space == Space::local) return;
  if (note.atomic || note.order != Order::weak) strong(w, note);
  if (note.space == Space::shared) {
    // Cooperative groups order the accesses to their scratch by shuffles, which CUDA does not promise to others.
    const uint32_t scratch = block_.grid->kernel->scratch;
    const uintptr_t offset = number(note.at(std::countr_zero(note.lanes))) - number(block_.shared);
    if (scratch && offset - scratch < kScratchBytes) return;
    visit<true>(w, i, note);
  } else {
    if (note.write) clock_.global_writes(static_cast<int>(w.index), note.lanes);
    visit<false>(w, i, note);
  }
}

/// The order that a strong access passes on or takes.
void BlockChecks::strong(Warp& w, const AccessNote& note) {
  const BlockClock::Strong access{note.atomic || !note.write, note.write, acquires(note.order), releases(note.order),
                                  reach_of(note.scope)};
  for (uint32_t left = note.lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const uintptr_t address = number(note.at(lane));
    BlockClock* const owner = note.space == Space::shared ? &owner_of(address)->clock_ : nullptr;
    clock_.strong(address, owner, static_cast<int>(w.first_thread) + lane, access);
  }
}

/// The checks of the block of the cluster whose shared memory this is.
BlockChecks* BlockChecks::owner_of(uintptr_t address) const {
  for (const auto& block : block_.cluster->blocks)
    if (address - number(block->shared) < block->shared_end) return block->checks.get();
  return block_.checks.get();
}

/// The quick test for a row of adjacent cells, one or more a lane.
template <bool kShared>
bool BlockChecks::visit_row(Warp& w, Site at, const AccessNote& note) {
  const uintptr_t first = number(note.first);
  ShadowPage& page = Shadow::get().page(first, note.bytes);
  const size_t bytes = size_t{note.bytes} * kLanes;
  if ((first & (ShadowPage::kBytes - 1)) + bytes > ShadowPage::kBytes) return false;
  const int shift = std::countr_zero(note.bytes) - page.cell_shift;
  const uint64_t mark = clock_.now() | w.first_thread;
  for (int attempt = 0;; ++attempt) {
    const auto row = note.write ? write_row : read_row;
    const RowResult result =
        row(page, page.cell(first), bytes >> page.cell_shift, shift, mark, at, clock_.glance<kShared>(w.index));
    if (result.kind == RowResult::done) return true;
    // A tile that a single copy loaded has one stamp.
    const bool may_know = result.kind == RowResult::write_unknown && proxy::is_proxy(stamp::who(result.unknown));
    if (!may_know || attempt == 2) return false;
    for (int lane = 0; lane < kLanes; ++lane)
      if (!clock_.ordered<kShared>(result.unknown, static_cast<int>(w.first_thread) + lane, first)) return false;
    clock_.all_know(w.index, result.unknown);
  }
}

template <bool kShared>
void BlockChecks::visit(Warp& w, const Instruction* i, const AccessNote& note) {
  const bool is_strong = note.atomic || note.order != Order::weak;
  const uint64_t how = (is_strong ? stamp::kStrong : 0) | (is_strong && note.scope == Scope::cta ? stamp::kNarrow : 0);
  const uint64_t now = clock_.now();
  const Site at = site(i);
  const int first_thread = static_cast<int>(w.first_thread), warp = static_cast<int>(w.index);
  const bool together = note.addresses == nullptr && !is_strong;
  if (together && note.stride == note.bytes && note.lanes == kAllLanes && std::has_single_bit(note.bytes)) {
    if (visit_row<kShared>(w, at, note)) return;
  } else if (together && note.stride == 0 && !note.write && (note.lanes & (note.lanes - 1)) != 0) {
    // One access for all.
    const bool all = note.lanes == kAllLanes && w.exited == 0;
    const uint64_t mark = now | static_cast<uint64_t>(all ? stamp::warp_all(warp) : stamp::warp_some(warp));
    Visitor<kShared> visitor{clock_, clock_.glance<kShared>(w.index), mark, mark, at, first_thread, note.lanes};
    visit_lane(w, visitor, std::countr_zero(note.lanes), note.first, note.bytes, note);
    return;
  }
  Visitor<kShared> visitor{clock_, clock_.glance<kShared>(w.index), 0, 0, at, first_thread, 0};
  const auto visit_one = [&](int lane) {
    visitor.now = now | (w.first_thread + static_cast<uint32_t>(lane));
    visitor.mark = visitor.now | how;
    visitor.lanes = 1u << lane;
    visit_lane(w, visitor, lane, note.at(lane), note.bytes, note);
  };
  if (note.write || is_strong) {
    for (uint32_t left = note.lanes; left != 0; left &= left - 1) visit_one(std::countr_zero(left));
    return;
  }
  // Lanes that read the same are one.
  SameAddress same(note);
  ShadowPage* page = nullptr;
  uintptr_t number_of_page = 0;
  for (int g = 0; g < same.groups; ++g) {
    const uint32_t lanes = same.lanes[g];
    const int lane = std::countr_zero(lanes);
    visitor.now = visitor.mark = now | static_cast<uint64_t>((lanes & (lanes - 1)) == 0 ? first_thread + lane : stamp::warp_some(warp));
    visitor.lanes = lanes;
    const uintptr_t address = number(note.at(lane));
    if (!page || address >> ShadowPage::kShift != number_of_page) {
      page = &Shadow::get().page(address, note.bytes);
      number_of_page = address >> ShadowPage::kShift;
    }
    // One cell, as mostly, or several.
    if (note.bytes >> page->cell_shift != 1)
      visit_lane(w, visitor, lane, note.at(lane), note.bytes, note);
    else if (!visitor.read(Cell(*page, page->cell(address)), address)) [[unlikely]]
      report({first_thread, at, verb(note)}, visitor.conflict, kShared, address, note.bytes);
  }
}

/// The byte that a lane is about to store at an address, or -1.
static int stored_byte(const Warp& w, const AccessNote& note, int lane, uintptr_t at) {
  const AccessForm& form = *note.stored;
  const size_t offset = at - number(note.at(lane));
  if (offset >= note.bytes) return -1;
  const size_t e = offset / form.bytes, k = offset % form.bytes, width = std::max<size_t>(4, form.register_bytes[e]);
  return static_cast<uint8_t>(w.in<char>(form.registers[e])[static_cast<size_t>(lane) * width + k]);
}

/// Whether a lane is about to store the bytes that are in memory.
static bool stores_again(const Warp& w, const AccessNote& note, int lane, uintptr_t address, size_t bytes) {
  if (!note.stored) return false;
  for (uintptr_t at = address; at < address + bytes; ++at)
    if (stored_byte(w, note, lane, at) != *reinterpret_cast<const uint8_t*>(at)) return false;
  return true;
}

template <bool kShared>
inline void BlockChecks::visit_lane(Warp& w, Visitor<kShared>& visitor, int lane, char* memory, uint32_t bytes,
                                    const AccessNote& note) {
  const uintptr_t begin = number(memory);
  ShadowPage& page = Shadow::get().page(begin, bytes);
  const size_t cell_bytes = size_t{1} << page.cell_shift;
  size_t cell = page.cell(begin);
  if (!note.write && bytes == cell_bytes * ShadowPage::Cells::kCount && cell % ShadowPage::Cells::kCount == 0 &&
      visitor.read_four(Cell(page, cell), begin))
    return;
  const auto look = [&]<bool kWrite>() {
    for (uintptr_t at = begin; at < begin + bytes; at += cell_bytes, ++cell) {
      const Cell one(page, cell);
      if (kWrite ? visitor.write(one, at) : visitor.read(one, at)) [[likely]]
        continue;
      if (note.stored && same_value(w, note, lane, visitor, at, cell_bytes)) continue;
      const bool again = kWrite && stamp::wrote(visitor.conflict.stamp) && stores_again(w, note, lane, at, cell_bytes);
      report({visitor.first_thread, visitor.at, verb(note)}, visitor.conflict, kShared, at, bytes, again);
    }
  };
  if (note.write)
    look.template operator()<true>();
  else
    look.template operator()<false>();
}

/// Lanes of a warp that write the same value to an address by one instruction: their order is invisible.
template <bool kShared>
bool BlockChecks::same_value(const Warp& w, const AccessNote& note, int lane, const Visitor<kShared>& visitor,
                             uintptr_t address, size_t bytes) const {
  const uint64_t other = visitor.conflict.stamp;
  const int there = stamp::who(other) - static_cast<int>(w.first_thread);
  if (visitor.conflict.at != visitor.at || ((other ^ visitor.now) & ~(stamp::kWhoMask | stamp::kWrote)) != 0 ||
      there < 0 || there >= lane || (note.lanes >> there & 1) == 0)
    return false;
  for (uintptr_t at = address; at < address + bytes; ++at) {
    const int mine = stored_byte(w, note, lane, at);
    if (mine < 0 || mine != stored_byte(w, note, there, at)) return false;
  }
  return true;
}

/// Whether bytes are fresh that the lanes read, or that lie between these.
static bool may_be_fresh(const AccessNote& note) {
  const char *low = note.at(std::countr_zero(note.lanes)), *high = low;
  for (uint32_t left = note.addresses || note.stride != 0 ? note.lanes : 0; left != 0; left &= left - 1) {
    const char* const at = note.at(std::countr_zero(left));
    low = std::min(low, at);
    high = std::max(high, at);
  }
  const size_t bytes = static_cast<size_t>(high - low) + note.bytes;
  constexpr size_t kNear = 1024;
  return bytes > kNear || any_fresh(low, bytes);
}

void BlockChecks::fresh(Warp& w, const Instruction* i, const AccessNote& note) {
  const bool row = note.addresses == nullptr && note.stride == note.bytes && note.lanes == kAllLanes;
  if ((note.atomic && !note.replaces) || !note.write) {
    if (may_be_fresh(note))
      for (uint32_t left = note.lanes; left != 0; left &= left - 1) {
        const int lane = std::countr_zero(left);
        if (any_fresh(note.at(lane), note.bytes)) {
          if (note.loaded) {
            load_undefined(w, i, note);
            break;
          }
          report_fresh(w, lane, site(i), note.at(lane), note.bytes, note.space);
          break;
        }
        if (note.addresses == nullptr && note.stride == 0) break;
      }
  }
  if (!note.write) return;
  if (row)
    mark_written(note.first, size_t{note.bytes} * kLanes);
  else
    for (uint32_t left = note.lanes; left != 0; left &= left - 1)
      mark_written(note.at(std::countr_zero(left)), note.bytes);
  if (w.undefined && note.stored) store_undefined(w, i, note);
}

}  // namespace emulator::ptx
