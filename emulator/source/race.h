// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "emulator/source/clock.h"
#include "emulator/source/shadow.h"

// One access to one cell: compared with the accesses that the cell remembers, then remembered. Two accesses
// race when neither is ordered before the other, one of them writes, and not both are atomic.

namespace emulator::source {

enum class Access : uint8_t { read, write, atomic };

/// The earlier of two accesses that race.
struct Conflict {
  enum Kind : uint8_t { write, read, atomic, copy_in_flight } kind;
  uint64_t stamp;
  Site at;
};

/// One thread at one moment, on memory of one kind: kShared is private to the block.
template <bool kShared>
struct Visitor {
  BlockClock& clock;
  int thread;
  uint64_t now;
  Site at;
  Conflict conflict{};

  /// False when the access races with what `conflict` then says. `access` is a constant at every call.
  bool visit(Access access, Cell& cell, uintptr_t address) {
    switch (access) {
      case Access::read:
        return read(cell, address);
      case Access::write:
        return write(cell, address);
      case Access::atomic:
        return atomic(cell, address);
    }
    return true;
  }

  bool read(Cell& cell, uintptr_t address) {
    const uint64_t first = load(cell.reads[0]);
    const uint64_t written = load(cell.write);
    if (!after_write(cell, written, address)) return false;
    if (first == now) return true;
    const uint64_t second = load(cell.reads[1]);
    if ((first | second) & stamp::kAtomic) [[unlikely]]
      if (!after_atomics(cell, address)) return false;
    remember_read(cell, first, second, now, at, address);
    return true;
  }

  bool write(Cell& cell, uintptr_t address) {
    const uint64_t written = load(cell.write);
    if (!after_write(cell, written, address)) return false;
    for (int i = 0; i < 2; ++i) {
      const uint64_t read = load(cell.reads[i]);
      if (!read) continue;
      if (!ordered(read, address))
        return found(stamp::atomic(read) ? Conflict::atomic : Conflict::read, read, cell.reads_at[i]);
      store(cell.reads[i], 0);
    }
    store(cell.write, now);
    cell.write_at = at;
    return true;
  }

  bool atomic(Cell& cell, uintptr_t address) {
    const uint64_t written = load(cell.write);
    const bool after = ordered(written, address);
    if (in_flight(cell, written) || (!after && !stamp::atomic(written))) return after_write(cell, written, address);
    for (int i = 0; i < 2; ++i) {
      const uint64_t read = load(cell.reads[i]);
      if (!read) continue;
      if (ordered(read, address))
        store(cell.reads[i], 0);
      else if (!stamp::atomic(read))
        return found(Conflict::read, read, cell.reads_at[i]);
    }
    // Another thread's atomic stays, so that plain accesses are compared with it.
    if (!after) remember_read(cell, load(cell.reads[0]), load(cell.reads[1]), written, cell.write_at, address);
    store(cell.write, now | stamp::kAtomic);
    cell.write_at = at;
    return true;
  }

  /// A read by a proxy on this thread's behalf: `s` is kept, and counts from now on.
  bool read_as(Cell& cell, uintptr_t address, uint64_t s) {
    if (!after_write(cell, load(cell.write), address)) return false;
    remember_read(cell, load(cell.reads[0]), load(cell.reads[1]), s, at, address);
    return true;
  }

  bool ordered(uint64_t s, uintptr_t address) const { return clock.ordered<kShared>(s, thread, address); }

  bool in_flight(const Cell& cell, uint64_t written) const {
    return kShared && (cell.write_at & kInFlight) && clock.is_live(stamp::block(written));
  }

 private:
  // Blocks on other OS threads visit the same cells of global memory. A record may be lost between a load and a
  // store, but a race that is found is real.
  static uint64_t load(const uint64_t& s) { return __atomic_load_n(&s, __ATOMIC_RELAXED); }
  static void store(uint64_t& s, uint64_t value) { __atomic_store_n(&s, value, __ATOMIC_RELAXED); }

  bool found(Conflict::Kind kind, uint64_t s, Site where) {
    conflict = {kind, s, where};
    return false;
  }

  bool after_write(const Cell& cell, uint64_t written, uintptr_t address) {
    if (in_flight(cell, written)) [[unlikely]]
      return found(Conflict::copy_in_flight, written, cell.write_at);
    if (!ordered(written, address)) [[unlikely]]
      return found(stamp::atomic(written) ? Conflict::atomic : Conflict::write, written, cell.write_at);
    return true;
  }

  bool after_atomics(const Cell& cell, uintptr_t address) {
    for (int i = 0; i < 2; ++i) {
      const uint64_t s = load(cell.reads[i]);
      if (stamp::atomic(s) && !ordered(s, address)) return found(Conflict::atomic, s, cell.reads_at[i]);
    }
    return true;
  }

  void remember_read(Cell& cell, uint64_t first, uint64_t second, uint64_t s, Site where, uintptr_t address) {
    int slot;
    if (ordered(first, address)) {
      slot = 0;
    } else if (ordered(second, address)) {
      slot = 1;
    } else {
      // Three that nothing orders: keep the two that are furthest apart, else the later ones.
      const int held = stamp::distance(first, second);
      const int to_first = stamp::distance(first, s), to_second = stamp::distance(second, s);
      if (held >= to_first && held >= to_second &&
          (held >= 2 || (stamp::tick(first) >= stamp::tick(s) && stamp::tick(second) >= stamp::tick(s))))
        return;
      slot = to_first > to_second || (to_first == to_second && stamp::tick(second) < stamp::tick(first)) ? 1 : 0;
    }
    store(cell.reads[slot], s);
    cell.reads_at[slot] = where;
  }
};

}  // namespace emulator::source
