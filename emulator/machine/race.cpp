// SPDX-License-Identifier: Apache-2.0
#include "emulator/machine/race.h"

#include <cstring>

namespace emulator {

namespace {

using Cells = ShadowPage::Cells;
typedef int64_t Four [[gnu::vector_size(Cells::kCount * sizeof(int64_t))]];

Four load(const uint64_t* from) {
  Four row;
  std::memcpy(&row, from, sizeof(row));
  return row;
}
void store(uint64_t* to, Four row) { std::memcpy(to, &row, sizeof(row)); }
Four all(uint64_t value) { return Four{} + static_cast<int64_t>(value); }
constexpr int64_t bits(uint64_t value) { return static_cast<int64_t>(value); }
bool any(Four row) { return (row[0] | row[1] | row[2] | row[3]) != 0; }

/// -1 where a stamp is ordered before the current access: BlockClock::Glance for four.
struct Glances {
  Four from, span, own, floor, warp_floor, warp, known0, known1, blocks_exact;
  explicit Glances(const BlockClock::Glance& g)
      : from(Four{} + g.from),
        span(Four{} + g.span),
        own(Four{} + g.own),
        floor(Four{} + g.floor),
        warp_floor(Four{} + g.warp_floor),
        warp(Four{} + g.warp),
        known0(Four{} + g.known[0]),
        known1(Four{} + g.known[1]),
        blocks_exact(Four{} - int64_t{g.blocks_exact}) {}
  [[gnu::always_inline]] Four dead(Four s) const {
    const Four live = s - from;
    return (live < 0) | (live >= span);
  }
  /// Most settled stamps: of threads that have ended, or of this block's before a barrier.
  [[gnu::always_inline]] Four settled(Four s) const {
    const Four mine = s - own;
    return dead(s) | ((mine >= 0) & (mine < floor) & is_thread(s));
  }
  [[gnu::always_inline]] static Four is_thread(Four s) {
    return (s & bits(stamp::kProxies)) != bits(stamp::kProxies);
  }
  [[gnu::always_inline]] Four operator()(Four s, Four now) const {
    const Four mine = s - own;
    const Four apart = (s ^ now) & bits(stamp::kBlockMask | stamp::kWhoMask);
    const Four same_warp = (s & bits(stamp::kWarpMask)) == warp;
    const Four plain = s & ~bits(stamp::kWrote);
    return dead(s) | ((mine >= 0) & is_thread(s) & ((mine < floor) | (same_warp & (mine < warp_floor)))) | (apart == 0) |
           (plain == known0) | (plain == known1);
  }
};

/// Lane k / 2^shift for cells k, k + 1, …
[[gnu::always_inline]] inline Four lanes_of(size_t k, int shift) {
  constexpr Four kFirst = {0, 1, 2, 3};
  return (kFirst + static_cast<int64_t>(k)) >> shift;
}

/// Whether one more reading changes nothing: the two that each cell remembers are of this tick and of two warps, or of two
/// blocks, or the first is this very one. Most rows of most kernels are read by more than two.
bool is_read_enough(const Cells* row, size_t groups, uint64_t mark, int shift, const Glances& before) {
  constexpr uint64_t kTick = uint64_t{1} << stamp::kTickShift;
  const int64_t first = bits(mark & ~(stamp::kWhoMask | uint64_t{7} << stamp::kHowShift)), end = first + bits(kTick);
  const auto in_tick = [&](auto s) { return (s >= first) & (s < end); };
  const auto enough = [&](auto&& is_enough) {
    Four good = all(~uint64_t{0});
    for (size_t g = 0; g < groups; ++g) {
      const Four r0 = load(row[g].reads[0]), r1 = load(row[g].reads[1]);
      good &= before.settled(load(row[g].write)) & (((r0 | r1) & bits(stamp::kWrote)) == 0) & is_enough(g, r0, r1);
    }
    return !any(~good);
  };
  const int64_t r0 = bits(row->reads[0][0]), r1 = bits(row->reads[1][0]);
  if (r0 == bits(mark))
    return enough([&](size_t g, Four s, Four) { return s == all(mark) + lanes_of(g * Cells::kCount, shift); });
  if (in_tick(r0) && in_tick(r1))
    return enough([&](size_t, Four s, Four t) {
      return in_tick(s) & in_tick(t) & Glances::is_thread(s) & Glances::is_thread(t) &
             (((s ^ t) & bits(stamp::kWarpMask)) != 0);
    });
  if (((r0 ^ r1) & bits(stamp::kBlockMask)) == 0) return false;
  return enough([&](size_t, Four s, Four t) {
    return before.blocks_exact & ~before.dead(s) & ~before.dead(t) & (((s ^ t) & bits(stamp::kBlockMask)) != 0);
  });
}

RowResult look_closer(const Cells* four, size_t cells, uint64_t mark, int shift, const BlockClock::Glance& glance) {
  for (size_t k = 0; k < cells; ++k) {
    const uint64_t s = four[k / Cells::kCount].write[k % Cells::kCount];
    if (!glance(s, mark + (k >> shift))) return {RowResult::write_unknown, s};
  }
  return {RowResult::look};
}

}  // namespace

RowResult read_row(ShadowPage& page, size_t cell, size_t cells, int shift, uint64_t mark, Site at,
                   const BlockClock::Glance& glance) {
  if ((cells | cell) % Cells::kCount != 0) return {RowResult::look};
  const Glances before(glance);
  Cells* const row = page.cells + cell / Cells::kCount;
  const size_t groups = cells / Cells::kCount;
  if (is_read_enough(row, groups, mark, shift, before)) return {RowResult::done};
  const Four exact = Four{} - int64_t{glance.exact};
  const Four block = all(mark & stamp::kBlockMask);
  const Four tick = all(mark & ~(stamp::kWhoMask | uint64_t{7} << stamp::kHowShift));
  Four unknown{}, bad{}, not_first{}, not_second{}, changes{};
  for (size_t g = 0; g < groups; ++g) {
    const Four now = all(mark) + lanes_of(g * Cells::kCount, shift);
    const Four r0 = load(row[g].reads[0]), r1 = load(row[g].reads[1]);
    const Four o0 = before(r0, now), o1 = before(r1, now);
    // Two of different blocks, or of different warps of this block, need no third. Anything else that may
    // order them cannot have happened in this tick.
    const Four apart = r0 ^ r1;
    const Four blocks = (apart & bits(stamp::kBlockMask)) != 0;
    const Four own = (((r0 ^ block) & bits(stamp::kBlockMask)) == 0) & (((r1 ^ block) & bits(stamp::kBlockMask)) == 0);
    const Four warps = own & Glances::is_thread(r0) & Glances::is_thread(r1) & ((apart & bits(stamp::kWarpMask)) != 0);
    const Four this_tick = (r0 >= tick) & (r1 >= tick);
    const Four keep = (blocks & before.blocks_exact) | (warps & (exact | this_tick));
    const Four wrote = (((r0 & bits(stamp::kWrote)) != 0) & ~o0) | (((r1 & bits(stamp::kWrote)) != 0) & ~o1);
    unknown |= ~before(load(row[g].write), now);
    bad |= ~(o0 | o1 | keep) | wrote;
    not_first |= ~o0;
    not_second |= o0 | ~o1;
    changes |= o0 | o1;
  }
  if (any(unknown)) return look_closer(row, cells, mark, shift, glance);
  if (any(bad)) return {RowResult::look};
  if (!any(changes)) return {RowResult::done};
  if (!any(not_first) || !any(not_second)) {
    const size_t slot = any(not_first) ? 1 : 0;
    for (size_t g = 0; g < groups; ++g) {
      store(row[g].reads[slot], all(mark) + lanes_of(g * Cells::kCount, shift));
      for (Site& site : row[g].reads_at[slot]) site = at;
    }
    return {RowResult::done};
  }
  for (size_t k = 0; k < cells; ++k) {
    const Cell one(page, cell + k);
    const uint64_t now = mark + (k >> shift);
    const int slot = glance(one.read(0), now) ? 0 : glance(one.read(1), now) ? 1 : 2;
    if (slot == 2) continue;
    one.read(slot) = now;
    one.read_at(slot) = at;
  }
  return {RowResult::done};
}

RowResult write_row(ShadowPage& page, size_t cell, size_t cells, int shift, uint64_t mark, Site at,
                    const BlockClock::Glance& glance) {
  if ((cells | cell) % Cells::kCount != 0) return {RowResult::look};
  const Glances before(glance);
  Cells* const row = page.cells + cell / Cells::kCount;
  const size_t groups = cells / Cells::kCount;
  Four unknown{}, bad{};
  for (size_t g = 0; g < groups; ++g) {
    const Four now = all(mark) + lanes_of(g * Cells::kCount, shift);
    unknown |= ~before(load(row[g].write), now);
    bad |= ~(before(load(row[g].reads[0]), now) & before(load(row[g].reads[1]), now));
  }
  if (any(unknown)) return look_closer(row, cells, mark, shift, glance);
  if (any(bad)) return {RowResult::look};
  for (size_t g = 0; g < groups; ++g) {
    store(row[g].write, all(mark | stamp::kWrote) + lanes_of(g * Cells::kCount, shift));
    store(row[g].reads[0], Four{});
    store(row[g].reads[1], Four{});
    for (Site& site : row[g].write_at) site = at;
  }
  return {RowResult::done};
}

}  // namespace emulator
