// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <bit>

#include "emulator/machine/clock.h"
#include "emulator/machine/shadow.h"

// Checks an access to a cell against the cell's recorded accesses, then records the access. Two accesses race if
// neither happens before the other, at least one writes, and not both are strong.

namespace emulator {

/// The earlier of two accesses that race.
struct Conflict {
  uint64_t stamp;
  Site at;
  int lane;  ///< lane of the later access
};

/// The warp and lanes that access cells at one moment. kShared: shared memory of one cluster's blocks.
template <bool kShared>
struct Visitor {
  BlockClock& clock;
  BlockClock::Glance glance;
  uint64_t now;   ///< the accessing thread's stamp, plain
  uint64_t mark;  ///< recorded stamp with the kind of access; a proxy's if it accesses for the thread
  Site at;
  int first_thread;  ///< the warp's first thread
  uint32_t lanes;    ///< lanes that access this cell together
  Conflict conflict{};

  /// False if the access races with the access in `conflict`. The access is recorded in any case.
  [[gnu::always_inline]] bool read(const Cell& cell, uintptr_t address) {
    bool good = true;
    if (!glance(cell.write(), now)) [[unlikely]]
      good = after(cell.write(), cell.write_at(), address);
    return read_after(cell, address) && good;
  }
  /// As read(), if the cell's write is known to happen before.
  [[gnu::always_inline]] bool read_after(const Cell& cell, uintptr_t address) {
    const uint64_t first = cell.read(0), second = cell.read(1);
    if (((first | second) & stamp::kWrote) == 0) [[likely]] {
      const uint64_t to_first = first ^ mark, to_second = second ^ mark, held = first ^ second;
      if (to_first <= stamp::kWhoMask && ((first | mark) & kOther) == 0) {
        // This tick: by this warp, or by another; then the second may be by this or a third warp.
        if (to_first == 0) return true;
        if ((to_first & stamp::kWarpMask) == 0) return join(cell, 0, first);
        if (to_second <= stamp::kWhoMask && ((second ^ first) & stamp::kWarpMask) != 0 && (second & kOther) == 0)
          return (to_second & stamp::kWarpMask) == 0 && to_second != 0 ? join(cell, 1, second) : true;
      } else if (glance.blocks_exact && (held & stamp::kBlockMask) != 0 && (to_first & stamp::kBlockMask) != 0 &&
                 (to_second & stamp::kBlockMask) != 0 && !glance.dead(first) && !glance.dead(second)) {
        return true;  // three blocks
      } else if (glance(first, now)) {
        cell.read(0) = mark;
        cell.read_at(0) = at;
        return true;
      }
    }
    bool good = true;
    if (((first | second) & stamp::kWrote) != 0) [[unlikely]]
      for (int slot = 0; slot < 2; ++slot)
        if (const uint64_t s = cell.read(slot); stamp::wrote(s) && !glance(s, now))
          good = after(s, cell.read_at(slot), address) && good;
    remember(cell, mark, at, address);
    return good;
  }

  /// Reads four cells, of which this is the first. Returns false without a change if the cells need separate checks.
  [[gnu::always_inline]] bool read_four(const Cell& cell, uintptr_t address) {
    constexpr size_t kCount = ShadowPage::Cells::kCount;
    ShadowPage::Cells& four = cell.four;
    uint64_t differs = (four.reads[0][0] | four.reads[1][0]) & stamp::kWrote;
    for (size_t k = 1; k < kCount; ++k)
      differs |= (four.reads[0][k] ^ four.reads[0][0]) | (four.reads[1][k] ^ four.reads[1][0]);
    if (differs != 0) return false;
    for (const uint64_t written : four.write)
      if (!glance(written, now)) return false;
    read_after(cell, address);
    for (int slot = 0; slot < 2; ++slot)
      for (size_t k = 1; k < kCount; ++k) {
        four.reads[slot][k] = four.reads[slot][0];
        four.reads_at[slot][k] = four.reads_at[slot][0];
      }
    return true;
  }

  [[gnu::always_inline]] bool write(const Cell& cell, uintptr_t address) {
    const uint64_t written = cell.write();
    bool good = true, stays = outlasts(written, mark);
    if (!glance(written, now)) [[unlikely]] {
      stays = stays || compatible(written);
      good = after(written, cell.write_at(), address);
    }
    const Site written_at = cell.write_at();
    for (int slot = 0; slot < 2; ++slot) {
      const uint64_t s = cell.read(slot);
      if (s == 0) continue;
      if (!glance(s, now)) {
        if (compatible(s)) continue;
        good = after(s, cell.read_at(slot), address) && good;
      }
      if (!outlasts(s, mark)) cell.read(slot) = 0;
    }
    // Another thread's atomic access stays recorded, so that plain accesses are checked against it.
    if (stays) remember(cell, written, written_at, address);
    cell.write() = mark | stamp::kWrote;
    cell.write_at() = at;
    return good;
  }

  bool ordered(uint64_t s, uintptr_t address) const { return ignorant(s, address) < 0; }
  /// The first lane whose access is not ordered after the stamp; -1: none.
  int ignorant(uint64_t s, uintptr_t address) const {
    for (uint32_t left = lanes; left != 0; left &= left - 1)
      if (!clock.ordered<kShared>(s, first_thread + std::countr_zero(left), address)) return std::countr_zero(left);
    return -1;
  }

 private:
  /// The bits of `who` that are set for copies and proxies only.
  static constexpr uint64_t kOther = stamp::kCopies;
  static_assert((stamp::kWarps & stamp::kCopies) == 0 && (stamp::kProxies & stamp::kCopies) != 0);

  /// If another lane of the warp has read the cell in this tick, both become one record of several lanes.
  bool join(const Cell& cell, int slot, uint64_t s) const {
    if (stamp::is_warp(stamp::who(s))) return true;
    cell.read(slot) = of_several(s);
    return true;
  }
  bool compatible(uint64_t s) const {
    if ((s & mark & stamp::kStrong) == 0) return false;
    return ((s | mark) & stamp::kNarrow) == 0 || stamp::block(s) == stamp::block(mark);
  }
  /// Whether a plain access must stay recorded when a strong access follows: later strong accesses race only with the
  /// plain access.
  bool outlasts(uint64_t s, uint64_t later) const {
    return (later & ~s & stamp::kStrong) != 0 && !glance.settled(s);
  }
  bool after(uint64_t s, Site where, uintptr_t address) {
    if (compatible(s)) return true;
    const int lane = ignorant(s, address);
    if (lane < 0) return true;
    conflict = {s, where, lane};
    return false;
  }

  void remember(const Cell& cell, uint64_t s, Site where, uintptr_t address) {
    const uint64_t first = cell.read(0), second = cell.read(1);
    const bool first_goes = !outlasts(first, s), second_goes = !outlasts(second, s);
    int slot;
    if (first_goes && glance(first, now)) {
      slot = 0;
    } else if (first == of_several(s)) {
      return;
    } else if (((first ^ s) & ~uint64_t{31}) == 0 && stamp::who(s) < stamp::kThreads) {
      s = of_several(s);  // another lane of this warp, in the same tick
      slot = 0;
    } else if (second_goes && glance(second, now)) {
      slot = 1;
    } else if (second == of_several(s)) {
      return;
    } else if (((second ^ s) & ~uint64_t{31}) == 0 && stamp::who(s) < stamp::kThreads) {
      s = of_several(s);
      slot = 1;
    } else if (!stamp::wrote(s) && far(first, second, s)) {
      return;
    } else if (first_goes && ordered(first, address)) {
      slot = 0;
    } else if (second_goes && ordered(second, address)) {
      slot = 1;
    } else {
      // Three unordered reads: keep the two that are furthest apart, else the later two.
      const int held = stamp::distance(first, second);
      const int to_first = stamp::distance(first, s), to_second = stamp::distance(second, s);
      if (held >= to_first && held >= to_second &&
          (held >= 2 || (stamp::tick(first) >= stamp::tick(s) && stamp::tick(second) >= stamp::tick(s))))
        return;
      slot = to_first > to_second || (to_first == to_second && stamp::tick(second) < stamp::tick(first)) ? 1 : 0;
      // A read must not replace a strong write, which conflicts with more accesses.
      const auto stays = [&](uint64_t other) {
        return (stamp::wrote(other) && !stamp::wrote(s)) || outlasts(other, s);
      };
      if (stays(slot == 0 ? first : second)) slot = 1 - slot;
      if (stays(slot == 0 ? first : second)) return;
    }
    cell.read(slot) = s;
    cell.read_at(slot) = where;
  }

  /// Whether no third access can be further from the two than they are from each other, and no order can cover all
  /// their races.
  bool far(uint64_t first, uint64_t second, uint64_t s) const {
    const int held = stamp::distance(first, second);
    if (held == 3) return glance.blocks_exact;
    return glance.exact && held >= 2 && held >= stamp::distance(first, s) && held >= stamp::distance(second, s);
  }

  static uint64_t of_several(uint64_t s) {
    if (stamp::who(s) >= stamp::kThreads) return s;
    return (s & ~stamp::kWhoMask) | static_cast<uint64_t>(stamp::warp_some(stamp::who(s) / 32));
  }
};

/// Four cells whose stamps are known to come before. True: all cells had these stamps, and now have the stamps of a
/// further access.
[[gnu::always_inline]] inline bool replace_four(ShadowPage::Cells& four, uint64_t write, uint64_t read, uint64_t other,
                                                uint64_t mark, Site at, bool writes) {
  constexpr size_t kCount = ShadowPage::Cells::kCount;
  uint64_t differs = 0;
  for (size_t k = 0; k < kCount; ++k)
    differs |= (four.write[k] ^ write) | (four.reads[0][k] ^ read) |
               (writes ? four.reads[1][k] ^ other : four.reads[1][k] & stamp::kWrote);
  if (differs != 0) return false;
  for (size_t k = 0; k < kCount; ++k)
    if (writes) {
      four.write[k] = mark | stamp::kWrote;
      four.write_at[k] = at;
      four.reads[0][k] = four.reads[1][k] = 0;
    } else {
      four.reads[0][k] = mark;
      four.reads_at[0][k] = at;
    }
  return true;
}

/// Adjacent cells of a page that one warp's lanes access together, plainly: cell k's stamp is mark + (k >> shift).
struct CellRow {
  ShadowPage& page;
  size_t cell, cells;
  int shift;
  uint64_t mark;
  Site at;
};
/// For rows whose cells have one stamp.
inline constexpr int kOneStamp = 63;

/// How far a row got. All cells before `done` have been checked and recorded; the next ones, up to the end of their
/// line, need a visit each. `unknown`: the stamp of a write that is not known to happen before, or 0.
struct RowResult {
  size_t done;
  uint64_t unknown = 0;
};
/// `joins`: reads of a cell by a warp's lanes in one tick share a record, as in Visitor::read(). Otherwise two lanes stay
/// recorded.
/// Both begin with cell `from` of the row.
RowResult read_row(const CellRow& row, size_t from, const BlockClock::Glance& glance, bool joins);
RowResult write_row(const CellRow& row, size_t from, const BlockClock::Glance& glance);
/// Cells from `done` to the end of their line.
inline size_t cells_to_visit(const CellRow& row, size_t done) {
  return std::min(row.cells - done, ShadowPage::Line::kCells - (row.cell + done) % ShadowPage::Line::kCells);
}

}  // namespace emulator
