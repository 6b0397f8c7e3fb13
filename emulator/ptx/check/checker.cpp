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

/// The different addresses of an access, in the order of their first lanes, and the lanes of each.
struct Places {
  int count = 0;
  alignas(64) uintptr_t at[kLanes];
  alignas(64) uint32_t lanes[kLanes];
  /// A bit for each address that continues the previous one's row: both have several lanes, or two adjacent lanes.
  uint32_t follows = 0;

  explicit Places(const AccessNote& note) {
    if (note.lanes == kAllLanes && ascend(note)) return;
    if (note.lanes != kAllLanes || note.addresses == nullptr) {
      for (uint32_t left = note.lanes; left != 0; left &= left - 1) add(note, std::countr_zero(left));
    } else {
      for (int lane = 0; lane < kLanes; ++lane) add(note, lane);
    }
    for (int k = 1; k < count; ++k) {
      const bool several = !std::has_single_bit(lanes[k]), before = !std::has_single_bit(lanes[k - 1]);
      const bool with = several ? before : lanes[k] == lanes[k - 1] << 1;
      follows |= uint32_t{at[k] - at[k - 1] == note.bytes && with} << k;
    }
  }

 private:
  static uint32_t low(int n) { return n >= kLanes ? kAllLanes : (1u << n) - 1; }

  /// As tiles are read: addresses that never fall, again and again for each 1st, 2nd, 4th, … part of the warp.
  bool ascend(const AccessNote& note) {
    uintptr_t all[kLanes + 1];
    if (note.addresses)
      std::memcpy(all + 1, note.addresses, sizeof(all) - sizeof(*all));
    else
      for (int k = 0; k < kLanes; ++k) all[k + 1] = number(note.first) + static_cast<uint32_t>(k) * note.stride;
    all[0] = all[1];
    using Lanes = Row<uint64_t>;
    typedef int64_t Signed [[gnu::vector_size(sizeof(Lanes::Vector))]];
    Signed same{}, following{}, less{};
    for (int k = 0; k < kLanes; k += kLanes / 8) {
      const auto step = reinterpret_cast<Signed>(Lanes::load(all + k + 1) - Lanes::load(all + k));
      const auto bit = reinterpret_cast<Signed>(Lanes::load(kLaneBits<uint64_t>.bit + k));
      same |= (step == 0) & bit;
      following |= (step == int64_t{note.bytes}) & bit;
      less |= (step < 0) & bit;
    }
    const auto gather = [](Signed s) { return static_cast<uint32_t>(s[0] | s[1] | s[2] | s[3]); };
    const uint32_t is_same = gather(same), is_next = gather(following), is_less = gather(less);
    int period = kLanes;
    uint32_t each = 1;  // lane 0 of each part
    while ((is_less & low(period)) != 0) {
      if (period == 1) return false;
      period /= 2;
      uintptr_t differ = 0;
      for (int k = 1; k <= period; ++k) differ |= all[k] ^ all[k + period];
      if (differ != 0) return false;
      each |= each << period;
    }
    const uint32_t next = is_next & low(period);
    uint32_t firsts = (~is_same & low(period)) | 1;  // the first lane of each address
    if (firsts == low(period)) {
      std::memcpy(at, all + 1, sizeof(at));
      for (int k = 0; k < kLanes; ++k) lanes[k] = each << (k % kLanes);
      count = period;
      follows = next;
      return true;
    }
    bool several_before = false;
    while (firsts != 0) {
      const int k = std::countr_zero(firsts);
      firsts &= firsts - 1;
      const int end = firsts != 0 ? std::countr_zero(firsts) : period;
      const bool several = end - k > 1 || each != 1;
      at[count] = all[k + 1];
      lanes[count] = (low(end) & ~low(k)) * each;
      follows |= (next >> k & uint32_t{several == several_before}) << count;
      several_before = several;
      ++count;
    }
    follows &= ~1u;
    return true;
  }

  void add(const AccessNote& note, int lane) {
    const uintptr_t address = number(note.at(lane));
    int k = count - 1;
    if (!falls_ && (k < 0 || address >= at[k])) {
      if (k >= 0 && address == at[k]) {
        lanes[k] |= 1u << lane;
        return;
      }
    } else {
      if (!falls_) {
        falls_ = true;
        std::memset(slots_, 0xff, sizeof(slots_));
        for (int n = 0; n < count; ++n) slots_[slot(at[n])] = static_cast<uint8_t>(n);
      }
      const size_t found = slot(address);
      if (slots_[found] != 0xff) {
        lanes[slots_[found]] |= 1u << lane;
        return;
      }
      slots_[found] = static_cast<uint8_t>(count);
    }
    at[count] = address;
    lanes[count++] = 1u << lane;
  }
  /// The address's place in a hash table, or an empty place for it.
  size_t slot(uintptr_t address) const {
    size_t k = (address >> 2 ^ address >> 8) % kSlots;
    while (slots_[k] != 0xff && at[slots_[k]] != address) k = (k + 1) % kSlots;
    return k;
  }

  static constexpr size_t kSlots = 64;
  bool falls_ = false;  ///< some address is less than an earlier one
  uint8_t slots_[kSlots];
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

/// The lanes whose access begins at an address.
static uint32_t lanes_at(const AccessNote& note, uintptr_t address) {
  uint32_t found = 0;
  for (uint32_t left = note.lanes; left != 0; left &= left - 1)
    if (const int lane = std::countr_zero(left); number(note.at(lane)) == address) found |= 1u << lane;
  return found;
}

/// Adjacent cells of one page, the first of which is at `address`. Lane `first` accesses the first note.bytes, the next
/// lane the next, and so on, or `lanes` access all together.
template <bool kShared>
void BlockChecks::visit_row(Warp& w, Visitor<kShared>& visitor, const CellRow& row, uintptr_t address, int first,
                            const AccessNote& note, bool joins) {
  int attempts = 0;
  for (size_t k = 0;;) {
    const RowResult result = note.write ? write_row(row, k, visitor.glance) : read_row(row, k, visitor.glance, joins);
    k = result.done;
    if (k == row.cells) return;
    // A tile that a single copy loaded has one stamp.
    if (result.unknown != 0 && attempts < 2 && all_know<kShared>(w, result.unknown, address)) {
      visitor.glance = clock_.glance<kShared>(w.index);
      ++attempts;
      continue;
    }
    if (!joins && !note.write) {
      joins = true;
      continue;
    }
    for (size_t left = cells_to_visit(row, k); left != 0; --left, ++k) {
      const size_t n = k >> (std::countr_zero(note.bytes) - row.page.cell_shift);  // access, from the first
      const uint32_t lanes =
          row.shift == kOneStamp ? lanes_at(note, address + n * note.bytes) : 1u << (static_cast<size_t>(first) + n);
      visitor.lanes = lanes;
      visitor.now = visitor.mark = row.mark + (k >> row.shift);
      visit_cell(w, visitor, std::countr_zero(lanes), Cell(row.page, row.cell + k),
                 address + (k << row.page.cell_shift), size_t{1} << row.page.cell_shift, note);
    }
  }
}

/// Whether all lanes of the warp know of a write by TMA. Notes it.
template <bool kShared>
bool BlockChecks::all_know(Warp& w, uint64_t written, uintptr_t address) {
  if (!proxy::is_proxy(stamp::who(written))) return false;
  for (int lane = 0; lane < kLanes; ++lane)
    if (!clock_.ordered<kShared>(written, static_cast<int>(w.first_thread) + lane, address)) return false;
  clock_.all_know(w.index, written);
  return true;
}

template <bool kShared>
void BlockChecks::visit(Warp& w, const Instruction* i, const AccessNote& note) {
  const bool is_strong = note.atomic || note.order != Order::weak;
  const uint64_t how = (is_strong ? stamp::kStrong : 0) | (is_strong && note.scope == Scope::cta ? stamp::kNarrow : 0);
  const uint64_t now = clock_.now();
  const Site at = site(i);
  const int first_thread = static_cast<int>(w.first_thread), warp = static_cast<int>(w.index);
  const bool together = note.addresses == nullptr && !is_strong;
  if (together && note.stride == 0 && !note.write && (note.lanes & (note.lanes - 1)) != 0) {
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
  if (is_strong || !std::has_single_bit(note.bytes)) {
    for (uint32_t left = note.lanes; left != 0; left &= left - 1) visit_one(std::countr_zero(left));
    return;
  }
  if (together && note.stride == note.bytes && note.lanes == kAllLanes) {
    const uintptr_t first = number(note.first);
    const size_t bytes = size_t{note.bytes} * kLanes;
    if ((first & (ShadowPage::kBytes - 1)) + bytes <= ShadowPage::kBytes) {
      ShadowPage& page = Shadow::get().page(first, note.bytes);
      const CellRow row{page,
                        page.cell(first),
                        bytes >> page.cell_shift,
                        std::countr_zero(note.bytes) - page.cell_shift,
                        now | w.first_thread,
                        at};
      return visit_row(w, visitor, row, first, 0, note, (row.cells | row.cell) % ShadowPage::Cells::kCount != 0);
    }
  }
  // Lanes that read the same are one.
  const Places places(note);
  if (note.write && places.count != std::popcount(note.lanes)) {
    for (uint32_t left = note.lanes; left != 0; left &= left - 1) visit_one(std::countr_zero(left));
    return;
  }
  for (int g = 0; g < places.count;) {
    const uintptr_t address = places.at[g];
    const uint32_t lanes = places.lanes[g];
    const int lane = std::countr_zero(lanes);
    const bool several = (lanes & (lanes - 1)) != 0;
    visitor.now = visitor.mark = now | static_cast<uint64_t>(several ? stamp::warp_some(warp) : first_thread + lane);
    visitor.lanes = lanes;
    ShadowPage& page = Shadow::get().page(address, note.bytes);
    const uintptr_t here = (ShadowPage::kBytes - (address & (ShadowPage::kBytes - 1))) / note.bytes;
    const int follow = g + 1 < kLanes ? std::countr_one(places.follows >> (g + 1)) : 0;
    const int count = 1 + std::min(follow, static_cast<int>(std::min<uintptr_t>(here, kLanes)) - 1);
    const int shift = std::countr_zero(note.bytes) - page.cell_shift;
    g += count;
    const size_t cell = page.cell(address);
    if (count == 1 && shift == 0 && page.is_apart(cell))
      visit_cell(w, visitor, lane, Cell(page, cell), address, note.bytes, note);
    else if (count > 1 || (!note.write && shift == 0))
      visit_row(w, visitor,
                {page, cell, static_cast<size_t>(count) << shift, several ? kOneStamp : shift, visitor.mark, at},
                address, lane, note, true);
    else
      visit_lane(w, visitor, lane, reinterpret_cast<char*>(address), note.bytes, note);
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
  for (uintptr_t at = begin; at < begin + bytes; at += cell_bytes, ++cell)
    visit_cell(w, visitor, lane, Cell(page, cell), at, cell_bytes, note);
}

template <bool kShared>
inline void BlockChecks::visit_cell(Warp& w, Visitor<kShared>& visitor, int lane, const Cell& cell, uintptr_t at,
                                    size_t bytes, const AccessNote& note) {
  if (note.write ? visitor.write(cell, at) : visitor.read(cell, at)) [[likely]]
    return;
  if (note.stored && same_value(w, note, lane, visitor, at, bytes)) return;
  const bool again = note.write && stamp::wrote(visitor.conflict.stamp) && stores_again(w, note, lane, at, bytes);
  report({visitor.first_thread, visitor.at, verb(note)}, visitor.conflict, kShared, at, note.bytes, again);
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

/// Whether bytes may be fresh that the lanes access.
static bool may_be_fresh(const AccessNote& note) {
  const uintptr_t first = number(note.at(std::countr_zero(note.lanes)));
  if (note.addresses && note.lanes == kAllLanes) {
    uintptr_t differ = 0;
    for (int lane = 0; lane < kLanes; ++lane) differ |= number(note.addresses[lane]) ^ first;
    constexpr uintptr_t kPage = 1 << 16;  // as any_fresh_near() has them
    if (differ < kPage && !any_fresh_near(note.addresses[0], 1)) return false;
  }
  uintptr_t low = first, high = first;
  if (note.addresses)
    for (int lane = 0; lane < kLanes; ++lane) {
      if ((note.lanes & kLaneBits<uint32_t>.bit[lane]) == 0) continue;
      low = std::min(low, number(note.addresses[lane]));
      high = std::max(high, number(note.addresses[lane]));
    }
  else
    high = number(note.first) + note.stride * static_cast<uint32_t>(std::bit_width(note.lanes) - 1);
  const size_t bytes = high - low + note.bytes;
  constexpr size_t kFar = size_t{1} << 20, kNear = 1024;
  const char* const begin = reinterpret_cast<const char*>(low);
  if (bytes <= kNear) return any_fresh(begin, bytes);
  return bytes > kFar || any_fresh_near(begin, bytes);
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
  else if (may_be_fresh(note))
    for (uint32_t left = note.lanes; left != 0; left &= left - 1)
      mark_written(note.at(std::countr_zero(left)), note.bytes);
  if (w.undefined && note.stored) store_undefined(w, i, note);
}

}  // namespace emulator::ptx
