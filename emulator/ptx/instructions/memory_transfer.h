// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "emulator/ptx/instructions/access.h"

// The fast paths of loads and stores: all addresses of a warp in the same range, elements of one width in registers of
// equal width. Other accesses use the general path, which also writes the error texts.

namespace emulator::ptx {

enum class Reach : uint8_t { global, shared, generic, local, parameter };

/// 16 bytes of memory or of a lane.
struct alignas(16) Wide {
  uint64_t low, high;
};

/// Each lane's local memory follows its neighbour's; all other spaces are shared by the lanes.
template <class Base, bool Strided>
struct LaneSpan : Span<Base> {
  uint64_t stride = 0;
  char* at(int lane) const {
    if constexpr (Strided) return Span<Base>::at(lane) + static_cast<uint64_t>(lane) * stride;
    return Span<Base>::at(lane);
  }
};

template <class Base>
struct Window {
  Base begin;
  uint64_t size;
};

/// Finds the range of the first lane's address. False: none, or a range that the fast path does not support.
template <Reach S, class Base>
[[gnu::always_inline]] inline bool find_window(Warp& w, const Instruction* i, int lane, bool write,
                                               LaneSpan<Base, S == Reach::local>& span, Window<Base>& window) {
  span.base = w.in<Base>(i->a);
  span.offset = static_cast<Base>(i->imm);
  const Base first = span.base[lane] + span.offset;
  if constexpr (S == Reach::local) {
    span.origin = reinterpret_cast<uintptr_t>(w.local);
    span.stride = w.local_bytes;
    window = {0, span.stride};
    return true;
  }
  if constexpr (S == Reach::parameter) {
    const Grid& grid = *w.block->grid;
    span.origin = reinterpret_cast<uintptr_t>(grid.parameters);
    window = {0, grid.kernel->parameter_bytes};
    return true;
  }
  if constexpr (S == Reach::shared) {
    const Block* block = w.block;
    const Base rank = first >> kRankShift;
    if (rank != 0) {
      if (rank > w.block->cluster->blocks.size()) return false;
      block = w.block->cluster->block(static_cast<uint32_t>(rank - 1));
      if (block->done()) return false;
    }
    const Base at = rank << kRankShift;
    span.origin = reinterpret_cast<uintptr_t>(block->shared) - at;
    window = {at + kSharedBase, block->shared_end - kSharedBase};
    return true;
  }
  if constexpr (S == Reach::generic) {
    const uint64_t kind = first & kWindowMask;
    if (kind == kSharedWindow) {
      if ((first & ~kWindowMask) >> kRankShift != 0) return false;
      span.origin = reinterpret_cast<uintptr_t>(w.block->shared) - kSharedWindow;
      window = {kSharedWindow + kSharedBase, w.block->shared_end - kSharedBase};
      return true;
    }
    if (kind != 0) return false;
  }
  if constexpr (S == Reach::global || S == Reach::generic) {
    const Block::Known* const known = known_range(w, i, first, write);
    if (!known) return false;
    span.origin = 0;
    window = {known->begin, known->bytes};
    return true;
  }
}

typedef uint32_t Four [[gnu::vector_size(16), gnu::may_alias]];
typedef uint32_t Eight [[gnu::vector_size(32), gnu::may_alias]];

/// Rows of 8 lanes, lane k's in the low half of row k or the high half of row k - 4, to columns; and back, as the
/// transposition of each half is its own inverse.
[[gnu::always_inline]] inline void transpose(Eight& a, Eight& b, Eight& c, Eight& d) {
  const Eight ac0 = __builtin_shufflevector(a, c, 0, 8, 1, 9, 4, 12, 5, 13);
  const Eight ac1 = __builtin_shufflevector(a, c, 2, 10, 3, 11, 6, 14, 7, 15);
  const Eight bd0 = __builtin_shufflevector(b, d, 0, 8, 1, 9, 4, 12, 5, 13);
  const Eight bd1 = __builtin_shufflevector(b, d, 2, 10, 3, 11, 6, 14, 7, 15);
  a = __builtin_shufflevector(ac0, bd0, 0, 8, 1, 9, 4, 12, 5, 13);
  b = __builtin_shufflevector(ac0, bd0, 2, 10, 3, 11, 6, 14, 7, 15);
  c = __builtin_shufflevector(ac1, bd1, 0, 8, 1, 9, 4, 12, 5, 13);
  d = __builtin_shufflevector(ac1, bd1, 2, 10, 3, 11, 6, 14, 7, 15);
}

/// The registers of V elements.
template <class R, int V>
struct Columns {
  R* lane[V];
  [[gnu::always_inline]] Columns(Warp& w, const Instruction* i, Ref first) {
    if constexpr (V == 1)
      lane[0] = const_cast<R*>(w.in<R>(first));
    else
      for (int e = 0; e < V; ++e)
        lane[e] = const_cast<R*>(w.in<R>(static_cast<const AccessForm*>(i->more)->registers[e]));
  }
};

template <class T, class R>
[[gnu::always_inline]] inline R widened(T value) {
  if constexpr (std::is_same_v<T, Wide>)
    return value;
  else if constexpr (std::is_signed_v<T>)
    return static_cast<R>(static_cast<std::make_signed_t<R>>(value));
  else
    return value;
}
template <class T>
[[gnu::always_inline]] inline T read(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

/// The addresses of some lanes, if they are in one range and aligned. False: use the general path.
template <Reach S, class Base>
inline bool quick_addresses(Warp& w, const Instruction* i, uint32_t bytes, uint32_t lanes, bool write, char** at) {
  LaneSpan<Base, S == Reach::local> span;
  Window<Base> window;
  if (lanes == 0) return true;
  if (!find_window<S>(w, i, std::countr_zero(lanes), write, span, window) || window.size < bytes) return false;
  const Base limit = static_cast<Base>(window.size - bytes), low = static_cast<Base>(bytes - 1);
  bool good = true;
  for (uint32_t left = lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const Base there = span.base[lane] + span.offset;
    good &= static_cast<Base>(there - window.begin) <= limit && (there & low) == 0;
    at[lane] = span.at(lane);
  }
  return good;
}
/// Sets `at` to the addresses (i->a, i->imm) of accesses of form.bytes * form.count bytes.
inline void locate_quickly(Warp& w, const Instruction* i, const AccessForm& form, uint32_t lanes, bool write,
                           bool atomic, char** at) {
  const uint32_t bytes = uint32_t{form.bytes} * form.count;
  bool good = false;
  if (!checked(w)) {
    if (form.space == Space::global)
      good = quick_addresses<Reach::global, uint64_t>(w, i, bytes, lanes, write, at);
    else if (form.space == Space::generic)
      good = quick_addresses<Reach::generic, uint64_t>(w, i, bytes, lanes, write, at);
    else if (form.space == Space::shared)
      good = form.base_bytes == 4 ? quick_addresses<Reach::shared, uint32_t>(w, i, bytes, lanes, write, at)
                                  : quick_addresses<Reach::shared, uint64_t>(w, i, bytes, lanes, write, at);
  }
  if (!good) {
    locate(w, i, form, lanes, write, atomic, at);
  } else if (form.space != Space::shared && touched(w)) {
    touched(w)->note(at, lanes, bytes, touch_of(form.order, write, atomic));
  }
}
/// Weak accesses by the quick path; its window is of shared memory when it has an origin.
template <Reach S, class Base>
[[gnu::always_inline]] inline void note_touched(Warp& w, const LaneSpan<Base, S == Reach::local>& span, uint32_t lanes,
                                                uint32_t bytes, Touch touch) {
  if constexpr (S == Reach::global || S == Reach::generic) {
    if (Touched* const all = touched(w)) [[unlikely]]
      if (span.origin == 0) note_lanes(*all, reinterpret_cast<const uint64_t*>(span.base), span.offset, lanes, bytes, touch);
  }
}

/// Informs the checks of weak accesses by the quick path.
template <Reach S, class Base>
[[gnu::noinline]] void note_span(Warp& w, const Instruction* i, const LaneSpan<Base, S == Reach::local>& span,
                                 uint32_t lanes, uint32_t bytes, bool write, Pattern pattern) {
  const AccessForm& form = *static_cast<const AccessForm*>(i->more);
  constexpr Space kSpace = S == Reach::shared ? Space::shared : S == Reach::local ? Space::local : Space::global;
  // A generic window that has an origin is the block's shared memory.
  AccessNote note{S == Reach::generic && span.origin != 0 ? Space::shared : kSpace, form.order, form.scope, write, false,
                  lanes, bytes, nullptr, nullptr, 0, write ? &form : nullptr, write ? nullptr : &form};
  char* at[kLanes];
  if (S != Reach::local && (pattern == Pattern::dense || pattern == Pattern::same)) {
    note.first = span.at(0);
    note.stride = pattern == Pattern::dense ? bytes : 0;
  } else {
    EMULATOR_EACH_LANE at[l] = span.at(l);  // all of them, by vector instructions
    note.addresses = at;
  }
  note_access(w, i, note);
}

/// The pattern of some adjacent lanes' addresses.
template <int Lanes, uint32_t Bytes, class Base>
[[gnu::always_inline]] inline Pattern scan_part(const Base* base) {
  const Base first = base[0], step = base[1] - first;
  if (step != 0 && step != Bytes) return Pattern::scattered;
  Base differs = 0;
  for (int k = 0; k < Lanes; ++k) differs |= base[k] ^ (first + static_cast<Base>(k) * step);
  return differs != 0 ? Pattern::scattered : step == 0 ? Pattern::same : Pattern::dense;
}

const Instruction* load_any(Warp& w, const Instruction* i);
const Instruction* store_any(Warp& w, const Instruction* i);

template <Reach S, class Base, class T, class R, int V>
const Instruction* load(Warp& w, const Instruction* i) {
  constexpr uint32_t kBytes = sizeof(T) * V;
  const uint32_t lanes = w.lanes(i);
  if (lanes == 0) return i + 1;
  LaneSpan<Base, S == Reach::local> span;
  Window<Base> window;
  if (!find_window<S>(w, i, std::countr_zero(lanes), false, span, window)) [[unlikely]]
    return load_any(w, i);
  const Columns<R, V> d(w, i, i->d);
  if (lanes != kAllLanes) {
    if (!inside<kBytes>(span.base, span.offset, window.begin, window.size, lanes)) return load_any(w, i);
    note_touched<S, Base>(w, span, lanes, kBytes, Touch::read);
    if (checked(w)) [[unlikely]]
      note_span<S, Base>(w, i, span, lanes, kBytes, false, Pattern::scattered);
    for (uint32_t left = lanes; left != 0; left &= left - 1) {
      const int lane = std::countr_zero(left);
      const char* const at = span.at(lane);
      for (int e = 0; e < V; ++e) d.lane[e][lane] = widened<T, R>(read<T>(at + e * sizeof(T)));
    }
    return i + 1;
  }
  const Pattern pattern = scan<kBytes>(span.base, span.offset, window.begin, window.size);
  if (pattern == Pattern::outside) [[unlikely]]
    return load_any(w, i);
  note_touched<S, Base>(w, span, lanes, kBytes, Touch::read);
  if (checked(w)) [[unlikely]]
    note_span<S, Base>(w, i, span, lanes, kBytes, false, pattern);
  if constexpr (S != Reach::local) {
    const char* const first = span.at(0);
    if (V == 1 && pattern == Pattern::dense) {
      if constexpr (std::is_same_v<T, R>) {
        if constexpr (sizeof(T) <= 8)
          copy_row<T>(d.lane[0], first);
        else
          std::memcpy(d.lane[0], first, sizeof(T) * kLanes);
      } else {
        T values[kLanes];
        std::memcpy(values, first, sizeof(values));
        for (int lane = 0; lane < kLanes; ++lane) d.lane[0][lane] = widened<T, R>(values[lane]);
      }
      return i + 1;
    }
    if (pattern == Pattern::same) {
      R values[V];
      for (int e = 0; e < V; ++e) values[e] = widened<T, R>(read<T>(first + e * sizeof(T)));
      for (int e = 0; e < V; ++e)
        for (int lane = 0; lane < kLanes; ++lane) d.lane[e][lane] = values[e];
      return i + 1;
    }
  }
  if constexpr (V == 4 && sizeof(T) == 4 && sizeof(R) == 4) {
    for (int lane = 0; lane < kLanes; lane += 8) {
      Four low[4], high[4];
      for (int k = 0; k < 4; ++k) {
        low[k] = *reinterpret_cast<const Four*>(span.at(lane + k));
        high[k] = *reinterpret_cast<const Four*>(span.at(lane + 4 + k));
      }
      Eight rows[4];
      for (int k = 0; k < 4; ++k) rows[k] = __builtin_shufflevector(low[k], high[k], 0, 1, 2, 3, 4, 5, 6, 7);
      transpose(rows[0], rows[1], rows[2], rows[3]);
      for (int k = 0; k < 4; ++k) Row<uint32_t>::store(d.lane[k] + lane, rows[k]);
    }
  } else {
    // Blocks of 8 or 16 threads a row: parts of the warp read a row, or one element.
    constexpr int kPart = 8;
    for (int part = 0; part < kLanes; part += kPart) {
      const char* const at = span.at(part);
      if constexpr (V == 1 && S != Reach::local) {
        const Pattern of_part = scan_part<kPart, kBytes>(span.base + part);
        if (of_part == Pattern::dense) {
          T values[kPart];
          std::memcpy(values, at, sizeof(values));
          for (int k = 0; k < kPart; ++k) d.lane[0][part + k] = widened<T, R>(values[k]);
          continue;
        }
        if (of_part == Pattern::same) {
          const R value = widened<T, R>(read<T>(at));
          for (int k = 0; k < kPart; ++k) d.lane[0][part + k] = value;
          continue;
        }
      }
      for (int lane = part; lane < part + kPart; ++lane) {
        T values[V];
        std::memcpy(values, span.at(lane), sizeof(values));
        for (int e = 0; e < V; ++e) d.lane[e][lane] = widened<T, R>(values[e]);
      }
    }
  }
  return i + 1;
}

/// T: the element in memory; R: the lane whose low bytes the element is.
template <Reach S, class Base, class T, class R, int V>
const Instruction* store(Warp& w, const Instruction* i) {
  constexpr uint32_t kBytes = sizeof(T) * V;
  const uint32_t lanes = w.lanes(i);
  if (lanes == 0) return i + 1;
  LaneSpan<Base, S == Reach::local> span;
  Window<Base> window;
  if (!find_window<S>(w, i, std::countr_zero(lanes), true, span, window)) [[unlikely]]
    return store_any(w, i);
  const Columns<R, V> source(w, i, i->b);
  const auto put = [&](int lane) __attribute__((always_inline)) {
    T values[V];
    for (int e = 0; e < V; ++e) {
      if constexpr (std::is_same_v<T, Wide>)
        values[e] = source.lane[e][lane];
      else
        values[e] = static_cast<T>(source.lane[e][lane]);
    }
    std::memcpy(span.at(lane), values, sizeof(values));
  };
  if constexpr (S != Reach::local) w.changed = true;
  if (lanes != kAllLanes) {
    if (!inside<kBytes>(span.base, span.offset, window.begin, window.size, lanes)) return store_any(w, i);
    note_touched<S, Base>(w, span, lanes, kBytes, Touch::write);
    if (checked(w)) [[unlikely]]
      note_span<S, Base>(w, i, span, lanes, kBytes, true, Pattern::scattered);
    for (uint32_t left = lanes; left != 0; left &= left - 1) put(std::countr_zero(left));
    return i + 1;
  }
  const Pattern pattern = scan<kBytes>(span.base, span.offset, window.begin, window.size);
  if (pattern == Pattern::outside) [[unlikely]]
    return store_any(w, i);
  note_touched<S, Base>(w, span, lanes, kBytes, Touch::write);
  if (checked(w)) [[unlikely]]
    note_span<S, Base>(w, i, span, lanes, kBytes, true, pattern);
  if constexpr (S != Reach::local && V == 1) {
    if (pattern == Pattern::dense) {
      if constexpr (std::is_same_v<T, R>) {
        if constexpr (sizeof(T) <= 8)
          copy_row<T>(span.at(0), source.lane[0]);
        else
          std::memcpy(span.at(0), source.lane[0], sizeof(T) * kLanes);
      } else {
        T values[kLanes];
        for (int lane = 0; lane < kLanes; ++lane) values[lane] = static_cast<T>(source.lane[0][lane]);
        std::memcpy(span.at(0), values, sizeof(values));
      }
      return i + 1;
    }
  }
  if constexpr (V == 4 && sizeof(T) == 4 && sizeof(R) == 4) {
    for (int lane = 0; lane < kLanes; lane += 8) {
      Eight rows[4];
      for (int k = 0; k < 4; ++k) rows[k] = Row<uint32_t>::load(source.lane[k] + lane);
      transpose(rows[0], rows[1], rows[2], rows[3]);
      for (int k = 0; k < 4; ++k)
        *reinterpret_cast<Four*>(span.at(lane + k)) = __builtin_shufflevector(rows[k], rows[k], 0, 1, 2, 3);
      for (int k = 0; k < 4; ++k)
        *reinterpret_cast<Four*>(span.at(lane + 4 + k)) = __builtin_shufflevector(rows[k], rows[k], 4, 5, 6, 7);
    }
  } else {
    for (int lane = 0; lane < kLanes; ++lane) put(lane);
  }
  return i + 1;
}

}  // namespace emulator::ptx
