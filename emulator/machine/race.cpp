// SPDX-License-Identifier: Apache-2.0
#include "emulator/machine/race.h"

#include <array>
#include <cstring>

namespace emulator {

namespace {

using Cells = ShadowPage::Cells;
using Line = ShadowPage::Line;
typedef int64_t Four [[gnu::vector_size(Cells::kCount * sizeof(int64_t))]];
typedef Site FourSites [[gnu::vector_size(Cells::kCount * sizeof(Site))]];
typedef int32_t FourShort [[gnu::vector_size(Cells::kCount * sizeof(int32_t))]];

// Stamps of four cells, or of one that stands for a line: the same rules, whose conditions are 0 or -1.
template <class V>
V load(const uint64_t* from) {
  V row;
  std::memcpy(&row, from, sizeof(row));
  return row;
}
void store(uint64_t* to, Four row) { std::memcpy(to, &row, sizeof(row)); }
constexpr int64_t bits(uint64_t value) { return static_cast<int64_t>(value); }
[[gnu::always_inline]] inline Four less(Four a, Four b) { return a < b; }
[[gnu::always_inline]] inline int64_t less(int64_t a, int64_t b) { return -int64_t{a < b}; }
[[gnu::always_inline]] inline Four equal(Four a, Four b) { return a == b; }
[[gnu::always_inline]] inline int64_t equal(int64_t a, int64_t b) { return -int64_t{a == b}; }
template <class V>
[[gnu::always_inline]] inline V all(int64_t value) {
  return V{} + value;
}
/// Where any of these bits is set.
template <class V>
[[gnu::always_inline]] inline V has(V s, uint64_t mask) {
  return ~equal(s & bits(mask), V{});
}
[[gnu::always_inline]] inline bool any(int64_t one) { return one != 0; }
[[gnu::always_inline]] inline bool any(Four row) { return (row[0] | row[1] | row[2] | row[3]) != 0; }
[[gnu::always_inline]] inline Four pick(Four where, Four yes, Four no) { return (where & yes) | (~where & no); }

/// Where a stamp is ordered before the current access: BlockClock::Glance.
template <class V>
struct Glances {
  V from, span, own, floor, warp_floor, warp, known0, known1, blocks_exact, exact;
  explicit Glances(const BlockClock::Glance& g)
      : from(all<V>(g.from)),
        span(all<V>(g.span)),
        own(all<V>(g.own)),
        floor(all<V>(g.floor)),
        warp_floor(all<V>(g.warp_floor)),
        warp(all<V>(g.warp)),
        known0(all<V>(g.known[0])),
        known1(all<V>(g.known[1])),
        blocks_exact(all<V>(-int64_t{g.blocks_exact})),
        exact(all<V>(-int64_t{g.exact})) {}
  [[gnu::always_inline]] V dead(V s) const {
    const V live = s - from;
    return less(live, V{}) | ~less(live, span);
  }
  /// Most settled stamps: of threads that have ended, or of this block's before a barrier.
  [[gnu::always_inline]] V settled(V s) const {
    const V mine = s - own;
    return dead(s) | (~less(mine, V{}) & less(mine, floor) & is_thread(s));
  }
  [[gnu::always_inline]] static V is_thread(V s) {
    return ~equal(s & bits(stamp::kProxies), all<V>(bits(stamp::kProxies)));
  }
  [[gnu::always_inline]] V operator()(V s, V now) const {
    const V mine = s - own;
    const V same_warp = equal(s & bits(stamp::kWarpMask), warp);
    const V plain = s & ~bits(stamp::kWrote);
    return dead(s) | (~less(mine, V{}) & is_thread(s) & (less(mine, floor) | (same_warp & less(mine, warp_floor)))) |
           ~has(s ^ now, stamp::kBlockMask | stamp::kWhoMask) | equal(plain, known0) | equal(plain, known1);
  }
};

/// The effect of a plain read on a cell. The read replaces a remembered read, or both become a record of several lanes.
/// `unknown`: the write is not known to happen before. `bad`: Visitor::read() must decide.
template <class V>
struct Effect {
  V unknown, bad, first, second, join_first, join_second;
};

/// A read by all lanes of a warp. Two lanes' reads of a cell stay apart.
template <class V>
[[gnu::always_inline]] inline Effect<V> read_of_all(const Glances<V>& before, V write, V r0, V r1, V now) {
  const V o0 = before(r0, now), o1 = before(r1, now);
  // Two of different blocks, or of different warps of this block, need no third. Anything else that may
  // order them cannot have happened in this tick.
  const V tick = now & bits(~(stamp::kWhoMask | uint64_t{7} << stamp::kHowShift));
  const V apart = r0 ^ r1;
  const V blocks = has(apart, stamp::kBlockMask);
  const V own = ~has(r0 ^ now, stamp::kBlockMask) & ~has(r1 ^ now, stamp::kBlockMask);
  const V warps = own & Glances<V>::is_thread(r0) & Glances<V>::is_thread(r1) & has(apart, stamp::kWarpMask);
  const V this_tick = ~less(r0, tick) & ~less(r1, tick);
  const V keep = (blocks & before.blocks_exact) | (warps & (before.exact | this_tick));
  const V wrote = (has(r0, stamp::kWrote) & ~o0) | (has(r1, stamp::kWrote) & ~o1);
  return {~before(write, now), ~(o0 | o1 | keep) | wrote, o0, ~o0 & o1, V{}, V{}};
}

/// Why such a read of a row changes nothing. `again`: each cell's first read is the same read. `warps`, `blocks`: two
/// warps in this tick, or two blocks, have read each cell. Most rows of most kernels have more than two readers.
enum class Enough : uint8_t { none, again, warps, blocks };
template <class V>
[[gnu::always_inline]] inline V in_tick(V s, V now) {
  constexpr uint64_t kTick = uint64_t{1} << stamp::kTickShift;
  const V first = now & bits(~(stamp::kWhoMask | uint64_t{7} << stamp::kHowShift));
  return ~less(s, first) & less(s, first + bits(kTick));
}
Enough why_enough(uint64_t r0, uint64_t r1, uint64_t now) {
  if (r0 == now) return Enough::again;
  if ((in_tick(bits(r0), bits(now)) & in_tick(bits(r1), bits(now))) != 0) return Enough::warps;
  return ((r0 ^ r1) & stamp::kBlockMask) != 0 ? Enough::blocks : Enough::none;
}
template <class V>
[[gnu::always_inline]] inline V is_enough(Enough why, const Glances<V>& before, V write, V r0, V r1, V now) {
  const V good = before.settled(write) & ~has(r0 | r1, stamp::kWrote);
  if (why == Enough::again) return good & equal(r0, now);
  if (why == Enough::warps)
    return good & in_tick(r0, now) & in_tick(r1, now) & Glances<V>::is_thread(r0) & Glances<V>::is_thread(r1) &
           has(r0 ^ r1, stamp::kWarpMask);
  return good & before.blocks_exact & ~before.dead(r0) & ~before.dead(r1) & has(r0 ^ r1, stamp::kBlockMask);
}

/// Visitor::read(), for its frequent cases.
template <class V>
[[gnu::always_inline]] inline Effect<V> read_of_some(const Glances<V>& before, V write, V r0, V r1, V now) {
  const V o0 = before(r0, now), o1 = before(r1, now);
  const V to0 = r0 ^ now, to1 = r1 ^ now, held = r0 ^ r1;
  const V in_tick = ~has(to0, ~stamp::kWhoMask) & ~has(r0 | now, stamp::kCopies);
  const V same_warp = in_tick & ~has(to0, stamp::kWarpMask);
  const V two_warps =
      in_tick & ~same_warp & ~has(to1, ~stamp::kWhoMask) & ~has(r1, stamp::kCopies) & has(held, stamp::kWarpMask);
  const V blocks = before.blocks_exact & has(held, stamp::kBlockMask);
  const V three_blocks = blocks & ~in_tick & has(to0, stamp::kBlockMask) & has(to1, stamp::kBlockMask) &
                         ~before.dead(r0) & ~before.dead(r1);
  const V open = ~(same_warp | two_warps | three_blocks);
  const V is_some = has(now, stamp::kWarps);
  // The first read stays. The second one may be replaced.
  const V second = open & ~o0 & ~(is_some & equal(r0, now));
  const V other_lane = ~is_some & equal(to1 & bits(~uint64_t{31}), V{});
  const V again = (is_some & equal(r1, now)) | (~other_lane & blocks);
  // Three reads that nothing orders. Two warps of this block need no third; of two of another block one goes.
  const V third = second & ~o1 & ~again & ~other_lane & before.exact & ~has(held, stamp::kBlockMask) &
                  ~has(r0 | r1 | now, stamp::kCopies);
  const V far = third & ~has(to0, stamp::kBlockMask) & has(held, stamp::kWarpMask);
  const V goes = third & has(to0, stamp::kBlockMask), earlier = less(r1 >> stamp::kTickShift, r0 >> stamp::kTickShift);
  return {~before(write, now),
          has(r0 | r1, stamp::kWrote) | (second & ~o1 & ~again & ~far & ~goes),
          (open & o0) | (goes & ~earlier),
          (second & o1) | (goes & earlier),
          same_warp & ~equal(to0, V{}) & ~has(r0, stamp::kWarps),
          two_warps & ~has(to1, stamp::kWarpMask) & ~equal(to1, V{}) & ~has(r1, stamp::kWarps)};
}

/// Lane k / 2^shift for cells k, k + 1, …
[[gnu::always_inline]] inline Four lanes_of(int64_t k, int shift) {
  constexpr Four kFirst = {0, 1, 2, 3};
  return (kFirst + k) >> shift;
}
/// Whether cells k, k + 1, … are in [begin, end).
[[gnu::always_inline]] inline Four within(size_t k, size_t begin, size_t end) {
  constexpr Four kFirst = {0, 1, 2, 3};
  const Four cell = kFirst + bits(k);
  return (cell >= bits(begin)) & (cell < bits(end));
}
[[gnu::always_inline]] inline void set_sites(Site* sites, Four where, Site at) {
  FourSites old;
  std::memcpy(&old, sites, sizeof(old));
  const FourSites there = reinterpret_cast<FourSites>(__builtin_convertvector(where, FourShort));
  old = (there & (FourSites{} + at)) | (~there & old);
  std::memcpy(sites, &old, sizeof(old));
}

/// Part of a row, in one line.
struct Part {
  const CellRow& row;
  size_t k;           ///< the row's first cell in it
  size_t begin, end;  ///< in the line
  Line& line;
  Part(const CellRow& r, size_t at)
      : row(r),
        k(at),
        begin((r.cell + at) % Line::kCells),
        end(begin + std::min(Line::kCells - begin, r.cells - at)),
        line(r.page.lines[(r.cell + at) / Line::kCells]) {}
  bool whole() const { return end - begin == Line::kCells; }
  uint8_t spread() const { return static_cast<uint8_t>(std::max(0, Line::kShift - row.shift)); }
  /// The stamp of its first cell.
  uint64_t mark() const { return row.mark + (k >> row.shift); }
  bool is_aligned() const {
    return row.shift == kOneStamp || (k - begin) % (size_t{1} << std::min(Line::kShift, row.shift)) == 0;
  }

  /// Whether the lanes of two stamps are equal in some cells only.
  static bool is_mixed(uint64_t a, uint8_t spread_a, uint64_t b, uint8_t spread_b) {
    return spread_a != spread_b && ((a ^ b) & (stamp::kBlockMask | stamp::kWarpMask)) == 0 &&
           ((a | b) & (stamp::kCopies | stamp::kWarps)) == 0;
  }
  /// Whether what is true of its first cell's stamps `s` is true of all.
  bool is_alike(const std::array<uint64_t, Line::kStamps>& s, uint64_t mark) const {
    return is_aligned() && !is_mixed(s[0], line.spread[0], mark, spread()) &&
           !is_mixed(s[1], line.spread[1], mark, spread()) && !is_mixed(s[2], line.spread[2], mark, spread()) &&
           !is_mixed(s[1], line.spread[1], s[2], line.spread[2]);
  }
  std::array<uint64_t, Line::kStamps> stamps() const {
    return {line.stamp(0, begin), line.stamp(1, begin), line.stamp(2, begin)};
  }
  void put(int which, uint64_t stamp, uint8_t spread) const {
    line.stamps[which] = stamp;
    line.spread[which] = spread;
  }
};

/// The mark of several lanes of a warp.
template <class V>
[[gnu::always_inline]] inline V several(V now) {
  return (now & bits(~stamp::kWhoMask)) | bits(static_cast<uint64_t>(stamp::warp_some(0))) |
         (now & bits(stamp::kWarpMask));
}

template <bool kJoins, class V>
[[gnu::always_inline]] inline Effect<V> effect(const Glances<V>& before, V write, V r0, V r1, V now) {
  if constexpr (kJoins) return read_of_some(before, write, r0, r1, now);
  return read_of_all(before, write, r0, r1, now);
}

/// Whether one more read of some cells of a line changes nothing: two other warps have read it in this tick, or two
/// other blocks in this launch.
bool is_read_by_others(const Line& line, uint64_t mark, const BlockClock::Glance& glance) {
  const uint64_t write = line.stamps[0], r0 = line.stamps[1], r1 = line.stamps[2];
  const uint64_t to0 = r0 ^ mark, to1 = r1 ^ mark, held = r0 ^ r1;
  if (((r0 | r1) & stamp::kWrote) != 0) return false;
  if (!glance.dead(write) && ((write & stamp::kProxies) == stamp::kProxies ||
                              write - static_cast<uint64_t>(glance.own) >= static_cast<uint64_t>(glance.floor)))
    return false;
  if ((to0 | to1) <= stamp::kWhoMask)
    return ((r0 | r1 | mark) & stamp::kCopies) == 0 && (to0 & stamp::kWarpMask) != 0 && (to1 & stamp::kWarpMask) != 0 &&
           (held & stamp::kWarpMask) != 0;
  return glance.blocks_exact && (to0 & stamp::kBlockMask) != 0 && (to1 & stamp::kBlockMask) != 0 &&
         (held & stamp::kBlockMask) != 0 && !glance.dead(r0) && !glance.dead(r1);
}

/// The cells of a part, in fours.
struct Fours {
  const Part& part;
  Cells* const cells;
  const size_t first, end;
  explicit Fours(const Part& p)
      : part(p),
        cells(&p.row.page.four(p.row.cell + p.k) - p.begin / Cells::kCount),
        first(p.begin / Cells::kCount),
        end((p.end + Cells::kCount - 1) / Cells::kCount) {}
  Four valid(size_t g) const { return within(g * Cells::kCount, part.begin, part.end); }
  Four now(size_t g) const {
    return all<Four>(bits(part.row.mark)) +
           lanes_of(bits(g * Cells::kCount + part.k) - bits(part.begin), part.row.shift);
  }
  Four write(size_t g) const { return load<Four>(cells[g].write); }
  Four read(size_t g, int slot) const { return load<Four>(cells[g].reads[slot]); }
  /// The first write that is not known to happen before.
  uint64_t unknown(const BlockClock::Glance& glance) const {
    for (size_t c = part.begin; c < part.end; ++c)
      if (const uint64_t s = cells[c / Cells::kCount].write[c % Cells::kCount];
          !glance(s, part.row.mark + ((part.k + c - part.begin) >> part.row.shift)))
        return s;
    return 0;
  }
};

/// The effect of reading a part on its line as one cell, or on each of its cells.
template <bool kJoins>
class Reading {
 public:
  /// False: cells need a visit each. `unknown`: as in RowResult.
  bool look(const Part& part, const BlockClock::Glance& glance, uint64_t& unknown) {
    const Line& line = part.line;
    if (const auto stamps = part.stamps(); !line.apart && part.is_alike(stamps, part.mark())) {
      of_line_ = effect<kJoins>(Glances<int64_t>(glance), bits(stamps[0]), bits(stamps[1]), bits(stamps[2]),
                                bits(part.mark()));
      if (of_line_.unknown != 0) unknown = stamps[0];
      if ((of_line_.unknown | of_line_.bad) != 0) return false;
      changes_ = (of_line_.first | of_line_.second | of_line_.join_first | of_line_.join_second) != 0;
      if (is_line_ = part.whole() || !changes_; is_line_) return true;
    }
    is_line_ = false;
    const Glances<Four> before(glance);
    const Fours fours(part);
    Four all_unknown{}, bad{}, changes{};
    for (size_t g = fours.first; g < fours.end; ++g) {
      const Four valid = fours.valid(g);
      Effect<Four>& e = of_cells_[g] =
          effect<kJoins>(before, fours.write(g), fours.read(g, 0), fours.read(g, 1), fours.now(g));
      all_unknown |= e.unknown & valid;
      bad |= e.bad & valid;
      for (Four* const where : {&e.first, &e.second, &e.join_first, &e.join_second}) changes |= * where &= valid;
    }
    if (any(all_unknown)) unknown = fours.unknown(glance);
    changes_ = any(changes);
    return !any(all_unknown | bad);
  }

  void apply(const Part& part) const {
    if (!changes_) return;
    if (is_line_) {
      const uint64_t mark = part.mark(), some = static_cast<uint64_t>(several(bits(mark)));
      apply(part, 1, of_line_.first, of_line_.join_first, mark, some);
      return apply(part, 2, of_line_.second, of_line_.join_second, mark, some);
    }
    const Fours fours(part);
    for (size_t g = fours.first; g < fours.end; ++g) {
      const Effect<Four>& e = of_cells_[g];
      const Four now = fours.now(g);
      Cells& four = fours.cells[g];
      store(four.reads[0], pick(e.join_first, several(now), pick(e.first, now, fours.read(g, 0))));
      store(four.reads[1], pick(e.join_second, several(now), pick(e.second, now, fours.read(g, 1))));
      set_sites(four.reads_at[0], e.first, part.row.at);
      set_sites(four.reads_at[1], e.second, part.row.at);
    }
  }

 private:
  static void apply(const Part& part, int which, int64_t replaces, int64_t joins, uint64_t mark, uint64_t some) {
    if (replaces != 0) {
      part.put(which, mark, part.spread());
      part.line.at[which] = part.row.at;
    } else if (joins != 0) {
      part.put(which, some, 0);
    }
  }

  bool is_line_, changes_;
  Effect<int64_t> of_line_;
  Effect<Four> of_cells_[Line::kCells / Cells::kCount];
};

RowResult read_joined(const CellRow& row, size_t from, const BlockClock::Glance& glance) {
  uint64_t unknown = 0;
  for (size_t k = from; k < row.cells;) {
    const Part part(row, k);
    if (part.line.apart || !is_read_by_others(part.line, part.mark(), glance)) {
      Reading<true> reading;
      if (!reading.look(part, glance, unknown)) return {k, unknown};
      reading.apply(part);
    }
    k += part.end - part.begin;
  }
  return {row.cells};
}

bool is_read_enough(const CellRow& row, const BlockClock::Glance& glance) {
  const Part start(row, 0);
  const auto& four = row.page.cells + row.cell / Cells::kCount;
  const Enough why = start.line.apart ? why_enough(four->reads[0][0], four->reads[1][0], row.mark)
                                      : why_enough(start.stamps()[1], start.stamps()[2], row.mark);
  if (why == Enough::none || (why == Enough::blocks && !glance.blocks_exact)) return false;
  for (size_t k = 0; k < row.cells;) {
    const Part part(row, k);
    const auto stamps = part.stamps();
    if (!part.line.apart && part.is_alike(stamps, part.mark())) {
      if (is_enough<int64_t>(why, Glances<int64_t>(glance), bits(stamps[0]), bits(stamps[1]), bits(stamps[2]),
                             bits(part.mark())) == 0)
        return false;
    } else {
      const Glances<Four> before(glance);
      const Fours fours(part);
      Four good = all<Four>(-1);
      for (size_t g = fours.first; g < fours.end; ++g)
        good &=
            ~fours.valid(g) | is_enough(why, before, fours.write(g), fours.read(g, 0), fours.read(g, 1), fours.now(g));
      if (any(~good)) return false;
    }
    k += part.end - part.begin;
  }
  return true;
}

/// All cells, or none.
RowResult read_all(const CellRow& row, const BlockClock::Glance& glance) {
  if (is_read_enough(row, glance)) return {row.cells};
  constexpr size_t kMost = 9;  // lines of 16 bytes a lane
  Reading<false> readings[kMost];
  uint64_t unknown = 0;
  size_t count = 0;
  for (size_t k = 0; k < row.cells; ++count) {
    const Part part(row, k);
    if (!readings[std::min(count, kMost - 1)].look(part, glance, unknown)) return {0, unknown};
    k += part.end - part.begin;
  }
  for (size_t k = 0, n = 0; k < row.cells; ++n) {
    const Part part(row, k);
    Reading<false>& reading = readings[std::min(n, kMost - 1)];
    if (count > kMost && n >= kMost - 1) reading.look(part, glance, unknown);  // another one has its place
    reading.apply(part);
    k += part.end - part.begin;
  }
  return {row.cells};
}

}  // namespace

RowResult read_row(const CellRow& row, size_t from, const BlockClock::Glance& glance, bool joins) {
  return joins ? read_joined(row, from, glance) : read_all(row, glance);
}

RowResult write_row(const CellRow& row, size_t from, const BlockClock::Glance& glance) {
  for (size_t k = from; k < row.cells;) {
    const Part part(row, k);
    Line& line = part.line;
    const uint64_t mark = part.mark();
    const auto stamps = part.stamps();
    if (line.apart || !part.whole() || !part.is_alike(stamps, mark) || !glance(stamps[0], mark) ||
        !glance(stamps[1], mark) || !glance(stamps[2], mark)) {
      const Glances<Four> before(glance);
      const Fours fours(part);
      Four unknown{}, bad{};
      for (size_t g = fours.first; g < fours.end; ++g) {
        const Four now = fours.now(g), valid = fours.valid(g);
        unknown |= ~before(fours.write(g), now) & valid;
        bad |= ~(before(fours.read(g, 0), now) & before(fours.read(g, 1), now)) & valid;
      }
      if (any(unknown)) return {k, fours.unknown(glance)};
      if (any(bad)) return {k};
      if (!part.whole() || !part.is_aligned())
        for (size_t g = fours.first; g < fours.end; ++g) {
          const Four valid = fours.valid(g);
          Cells& four = fours.cells[g];
          store(four.write, pick(valid, fours.now(g) | bits(stamp::kWrote), fours.write(g)));
          for (int slot = 0; slot < 2; ++slot) store(four.reads[slot], fours.read(g, slot) & ~valid);
          set_sites(four.write_at, valid, row.at);
        }
    }
    if (part.whole() && part.is_aligned()) {
      line.apart = false;
      part.put(0, mark | stamp::kWrote, part.spread());
      part.put(1, 0, 0);
      part.put(2, 0, 0);
      line.at[0] = row.at;
    }
    k += part.end - part.begin;
  }
  return {row.cells};
}

}  // namespace emulator
