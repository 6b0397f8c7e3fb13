// SPDX-License-Identifier: Apache-2.0
#include "emulator/ptx/checker.h"

#include <bit>

#include "emulator/machine/fresh.h"
#include "emulator/machine/options.h"

namespace emulator::ptx {

namespace {

/// For rows whose cells all belong to one.
constexpr int kOneActor = 63;

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

void note_access(Warp& w, const Instruction* i, const AccessNote& note) { w.block->checks->access(w, i, note); }
void note_fence(Warp& w, const FenceNote& note) {
  if (BlockChecks* const checks = race_checks_of(*w.block)) checks->fence(w, note);
}
void note_sync_warp(Warp& w, uint32_t lanes) {
  if (BlockChecks* const checks = race_checks_of(*w.block))
    checks->clock().sync_warp(static_cast<int>(w.index), lanes, ~w.exited);
}

BlockChecks::BlockChecks(Block& block) : block_(block), launch_(*block.grid->checks) {
  static std::atomic<uint32_t> generation{0};
  if (const uint32_t now = LaunchClock::generation(); generation.exchange(now) != now) Shadow::get().clear();
  const uint32_t blocks = block.grid->cluster_blocks;
  const uint32_t first = launch_.clock.first_block() + static_cast<uint32_t>(block.cluster->number) * blocks;
  clock_.begin(launch_.clock, first + block.rank, static_cast<int>(block.threads), first, blocks);
  if (!launch_.fresh) return;
  mark_fresh(block.shared + kSharedBase, block.shared_end - kSharedBase);
  for (const Warp& w : block.warps) mark_fresh(w.local, size_t{w.kernel().local_bytes} * kLanes);
}

BlockChecks::~BlockChecks() {
  clock_.end();
  if (!launch_.fresh) return;
  // The memory goes to others.
  mark_written(block_.shared + kSharedBase, block_.shared_end - kSharedBase);
  for (const Warp& w : block_.warps) mark_written(w.local, size_t{w.kernel().local_bytes} * kLanes);
}

Site BlockChecks::site(const Instruction* i) const {
  return static_cast<Site>(i - block_.grid->kernel->code.data());
}

void BlockChecks::access(Warp& w, const Instruction* i, const AccessNote& note) {
  if (note.space != Space::global && note.space != Space::shared && note.space != Space::local) return;
  if (note.lanes == 0) return;
  if (launch_.fresh) fresh(w, i, note);
  if (!launch_.races || note.space == Space::local) return;
  if (note.atomic || note.order != Order::weak) strong(w, note);
  if (note.space == Space::shared) {
    visit<true>(w, i, note);
  } else {
    if (note.write) clock_.global_writes(static_cast<int>(w.index), note.lanes);
    visit<false>(w, i, note);
  }
}

/// What a strong access hands on or takes.
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

template <bool kShared>
void BlockChecks::visit(Warp& w, const Instruction* i, const AccessNote& note) {
  const BlockClock::Glance glance = clock_.glance<kShared>();
  const bool is_strong = note.atomic || note.order != Order::weak;
  const uint64_t how = (is_strong ? stamp::kStrong : 0) | (is_strong && note.scope == Scope::cta ? stamp::kNarrow : 0);
  const uint64_t now = clock_.now();
  const Site at = site(i);
  const int first_thread = static_cast<int>(w.first_thread), warp = static_cast<int>(w.index);
  const bool together = note.addresses == nullptr && !is_strong;
  if (together && note.stride == note.bytes && note.lanes == kAllLanes && std::has_single_bit(note.bytes)) {
    const uintptr_t first = number(note.first);
    ShadowPage& page = Shadow::get().page(first, note.bytes);
    const size_t bytes = size_t{note.bytes} * kLanes;
    if ((first & (ShadowPage::kBytes - 1)) + bytes <= ShadowPage::kBytes) {
      const int shift = std::countr_zero(note.bytes) - page.cell_shift;
      const auto row = note.write ? write_row : read_row;
      if (row(page, page.cell(first), bytes >> page.cell_shift, shift, now | w.first_thread, at, glance)) return;
    }
  } else if (together && note.stride == 0 && !note.write && (note.lanes & (note.lanes - 1)) != 0) {
    // One access for all.
    const bool all = note.lanes == kAllLanes && w.exited == 0;
    const uint64_t mark = now | static_cast<uint64_t>((all ? stamp::kWarpAll : stamp::kWarpSome) + warp);
    Visitor<kShared> visitor{clock_, glance, mark, mark, at, first_thread, note.lanes};
    visit_lane(w, visitor, std::countr_zero(note.lanes), note.first, note.bytes, &note);
    return;
  }
  for (uint32_t left = note.lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const uint64_t mine = now | (w.first_thread + static_cast<uint32_t>(lane));
    Visitor<kShared> visitor{clock_, glance, mine, mine | how, at, first_thread, 1u << lane};
    visit_lane(w, visitor, lane, note.at(lane), note.bytes, &note);
  }
}

template <bool kShared>
void BlockChecks::visit_lane(Warp& w, Visitor<kShared>& visitor, int lane, char* memory, uint32_t bytes,
                             const AccessNote* note) {
  const uintptr_t begin = number(memory);
  ShadowPage& page = Shadow::get().page(begin, bytes);
  const size_t cell_bytes = size_t{1} << page.cell_shift;
  size_t cell = page.cell(begin);
  for (uintptr_t at = begin; at < begin + bytes; at += cell_bytes, ++cell) {
    if (note->write ? visitor.write(page, cell, at) : visitor.read(page, cell, at)) [[likely]]
      continue;
    if (note->stored && same_value(w, *note, lane, visitor, at, cell_bytes)) continue;
    report(w, lane, visitor.at, visitor.conflict, kShared, verb(*note), at, bytes);
  }
}

/// Lanes of a warp that write the same value to one place by one instruction: nobody can see an order.
template <bool kShared>
bool BlockChecks::same_value(const Warp& w, const AccessNote& note, int lane, const Visitor<kShared>& visitor,
                             uintptr_t address, size_t bytes) const {
  const uint64_t other = visitor.conflict.stamp;
  const int there = stamp::who(other) - static_cast<int>(w.first_thread);
  if (visitor.conflict.at != visitor.at || ((other ^ visitor.now) & ~(stamp::kWhoMask | stamp::kWrote)) != 0 ||
      there < 0 || there >= lane || (note.lanes >> there & 1) == 0)
    return false;
  const AccessForm& form = *note.stored;
  const auto byte = [&](int of, uintptr_t at, uint8_t& value) {
    const size_t offset = at - number(note.at(of));
    if (offset >= note.bytes) return false;
    const size_t e = offset / form.bytes, k = offset % form.bytes, width = std::max<size_t>(4, form.register_bytes[e]);
    value = static_cast<uint8_t>(w.in<char>(form.registers[e])[static_cast<size_t>(of) * width + k]);
    return true;
  };
  for (uintptr_t at = address; at < address + bytes; ++at) {
    uint8_t mine, its;
    if (!byte(lane, at, mine) || !byte(there, at, its) || mine != its) return false;
  }
  return true;
}

template <bool kShared>
void BlockChecks::visit_range(Warp& w, int lane, Site site, uint64_t mark, const char* memory, uint64_t bytes,
                              bool write, const char* what) {
  const uint64_t now = clock_.now() | (w.first_thread + static_cast<uint32_t>(lane));
  const bool by_proxy = proxy::is_proxy(stamp::who(mark));
  Visitor<kShared> visitor{clock_, clock_.glance<kShared>(), now, mark, site, static_cast<int>(w.first_thread), 1u << lane};
  uintptr_t at = number(memory);
  for (const uintptr_t end = at + bytes; at < end;) {
    const size_t here = std::min<uintptr_t>(end, (at | (ShadowPage::kBytes - 1)) + 1) - at;
    ShadowPage& page = Shadow::get().page(at, here);
    const size_t first = page.cell(at), cells = here >> page.cell_shift;
    const auto row = write ? write_row : read_row;
    if (mark == now && row(page, first, cells, kOneActor, mark, site, visitor.glance)) {
      at += here;
      continue;
    }
    uint64_t known = 0;  // tiles are written by one
    for (size_t k = 0; k < cells; ++k) {
      const uintptr_t address = at + (k << page.cell_shift);
      const uint64_t written = page.write[first + k];
      bool good;
      if (write) {
        good = visitor.write(page, first + k, address);
      } else {
        good = known != 0 && written == known ? visitor.read_after(page, first + k, address)
                                              : visitor.read(page, first + k, address);
        if (kShared && by_proxy && good && written != known && !is_fenced(written))
          report_unfenced(w, lane, site, page.write_at[first + k], written, what, address);
        known = written;
      }
      if (!good) report(w, lane, site, visitor.conflict, kShared, what, address, bytes);
    }
    at += here;
  }
}

template void BlockChecks::visit_range<true>(Warp&, int, Site, uint64_t, const char*, uint64_t, bool, const char*);
template void BlockChecks::visit_range<false>(Warp&, int, Site, uint64_t, const char*, uint64_t, bool, const char*);

/// Whether some thread that knew of a write has run fence.proxy.async since.
bool BlockChecks::is_fenced(uint64_t written) const {
  const uint32_t from = stamp::block(written);
  const int rank = views_.rank_of(from), who = stamp::who(written);
  if (rank < 0 || from != clock_.block() || proxy::is_proxy(who) || stamp::under_way(written)) return true;
  return !fenced_.empty() && stamp::tick(written) < fenced_.at(rank, stamp::thread(who));
}

void BlockChecks::stamp_range(const char* memory, uint64_t bytes, uint64_t mark, Site site) {
  uintptr_t at = number(memory);
  for (const uintptr_t end = at + bytes; at < end;) {
    const size_t here = std::min<uintptr_t>(end, (at | (ShadowPage::kBytes - 1)) + 1) - at;
    ShadowPage& page = Shadow::get().page(at, here);
    const size_t first = page.cell(at), cells = here >> page.cell_shift;
    for (size_t k = first; k < first + cells; ++k) {
      page.write[k] = mark | stamp::kWrote;
      page.write_at[k] = site;
      page.reads[0][k] = page.reads[1][k] = 0;
    }
    at += here;
  }
}

void BlockChecks::fresh(Warp& w, const Instruction* i, const AccessNote& note) {
  const bool row = note.addresses == nullptr && note.stride == note.bytes && note.lanes == kAllLanes;
  if (note.atomic || !note.write) {
    if (!row || any_fresh(note.first, size_t{note.bytes} * kLanes))
      for (uint32_t left = note.lanes; left != 0; left &= left - 1) {
        const int lane = std::countr_zero(left);
        if (any_fresh(note.at(lane), note.bytes)) {
          report_fresh(w, lane, site(i), note.at(lane), note.bytes, note.space);
          break;
        }
        if (note.addresses == nullptr && note.stride == 0) break;
      }
  }
  if (!note.write) return;
  if (row) return mark_written(note.first, size_t{note.bytes} * kLanes);
  for (uint32_t left = note.lanes; left != 0; left &= left - 1)
    mark_written(note.at(std::countr_zero(left)), note.bytes);
}

}  // namespace emulator::ptx
