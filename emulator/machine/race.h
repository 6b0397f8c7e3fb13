// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <bit>

#include "emulator/machine/clock.h"
#include "emulator/machine/shadow.h"

// What one access means for one cell: compared with the accesses that the cell remembers, then remembered. Two accesses
// race when neither is ordered before the other, one of them writes, and not both are strong.

namespace emulator {

/// The earlier of two accesses that race.
struct Conflict {
  uint64_t stamp;
  Site at;
};

/// Who accesses cells at one moment. kShared: memory of the blocks of one cluster.
template <bool kShared>
struct Visitor {
  BlockClock& clock;
  BlockClock::Glance glance;
  uint64_t now;   ///< the stamp of who asks, plain
  uint64_t mark;  ///< the stamp that stays: with how; of somebody else, where that one accesses for who asks
  Site at;
  int first_thread;  ///< of the warp
  uint32_t lanes;    ///< that access this cell together
  Conflict conflict{};

  /// False when the access races with what `conflict` then says. It is remembered all the same.
  bool read(ShadowPage& page, size_t cell, uintptr_t address) {
    const uint64_t written = page.write[cell];
    bool good = true;
    if (!glance(written, now)) [[unlikely]]
      good = after(written, page.write_at[cell], address);
    return read_after(page, cell, address) && good;
  }
  /// The same where the cell's write is known to come before.
  bool read_after(ShadowPage& page, size_t cell, uintptr_t address) {
    bool good = true;
    const uint64_t first = page.reads[0][cell], second = page.reads[1][cell];
    if (((first | second) & stamp::kWrote) != 0) [[unlikely]]
      for (int k = 0; k < 2; ++k)
        if (const uint64_t s = page.reads[k][cell]; stamp::wrote(s) && !glance(s, now))
          good = after(s, page.reads_at[k][cell], address) && good;
    remember(page, cell, first, second, mark, at, address);
    return good;
  }

  bool write(ShadowPage& page, size_t cell, uintptr_t address) {
    const uint64_t written = page.write[cell];
    bool good = true, stays = false;
    if (!glance(written, now)) [[unlikely]] {
      stays = compatible(written);
      good = after(written, page.write_at[cell], address);
    }
    for (int k = 0; k < 2; ++k) {
      uint64_t& s = page.reads[k][cell];
      if (s == 0) continue;
      if (!glance(s, now)) {
        if (compatible(s)) continue;
        good = after(s, page.reads_at[k][cell], address) && good;
      }
      s = 0;
    }
    // An atomic of somebody else stays, so that a plain access can be held against it.
    if (stays)
      remember(page, cell, page.reads[0][cell], page.reads[1][cell], written, page.write_at[cell], address);
    page.write[cell] = mark | stamp::kWrote;
    page.write_at[cell] = at;
    return good;
  }

 private:
  bool compatible(uint64_t s) const {
    if ((s & mark & stamp::kStrong) == 0) return false;
    return ((s | mark) & stamp::kNarrow) == 0 || stamp::block(s) == stamp::block(mark);
  }
  bool ordered(uint64_t s, uintptr_t address) const {
    for (uint32_t left = lanes; left != 0; left &= left - 1)
      if (!clock.ordered<kShared>(s, first_thread + std::countr_zero(left), address)) return false;
    return true;
  }
  bool after(uint64_t s, Site where, uintptr_t address) {
    if (compatible(s) || ordered(s, address)) return true;
    conflict = {s, where};
    return false;
  }

  void remember(ShadowPage& page, size_t cell, uint64_t first, uint64_t second, uint64_t s, Site where,
                uintptr_t address) {
    // A strong write must not be displaced by a read that asks less of others.
    const bool keeps_first = stamp::wrote(first) && !stamp::wrote(s), keeps_second = stamp::wrote(second) && !stamp::wrote(s);
    int slot;
    if (glance(first, now)) {
      slot = 0;
    } else if (glance(second, now)) {
      slot = 1;
    } else if (((first ^ s) & ~uint64_t{31}) == 0 && stamp::who(s) < stamp::kThreads) {
      s = stamp_of_several(s);  // another lane of this warp, in the same tick
      slot = 0;
    } else if (first == stamp_of_several(s)) {
      return;
    } else if (ordered(first, address)) {
      slot = 0;
    } else if (ordered(second, address)) {
      slot = 1;
    } else {
      // Three that nothing orders: keep the two that stand furthest apart, else the later ones.
      const int held = stamp::distance(first, second);
      const int to_first = stamp::distance(first, s), to_second = stamp::distance(second, s);
      if (held >= to_first && held >= to_second &&
          (held >= 2 || (stamp::tick(first) >= stamp::tick(s) && stamp::tick(second) >= stamp::tick(s))))
        return;
      slot = to_first > to_second || (to_first == to_second && stamp::tick(second) < stamp::tick(first)) ? 1 : 0;
      if (slot == 0 ? keeps_first : keeps_second) slot = 1 - slot;
      if (slot == 0 ? keeps_first : keeps_second) return;
    }
    page.reads[slot][cell] = s;
    page.reads_at[slot][cell] = where;
  }

  static uint64_t stamp_of_several(uint64_t s) {
    if (stamp::who(s) >= stamp::kThreads) return s;
    return (s & ~stamp::kWhoMask) | static_cast<uint64_t>(stamp::kWarpSome + stamp::who(s) / 32);
  }
};

/// A row of cells, of which each 2^shift belong to a lane; `mark` is the first lane's stamp, and so on. Plain accesses
/// only. False: it takes a closer look at each cell, and nothing has been changed.
bool read_row(ShadowPage& page, size_t cell, size_t cells, int shift, uint64_t mark, Site at,
              const BlockClock::Glance& glance);
bool write_row(ShadowPage& page, size_t cell, size_t cells, int shift, uint64_t mark, Site at,
               const BlockClock::Glance& glance);

}  // namespace emulator
