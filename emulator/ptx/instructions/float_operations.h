// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "emulator/ptx/instructions/arithmetic.h"

// How operations on f32 and f64 get their modifiers (PTX ISA 9.7.3).

namespace emulator::ptx {

/// An operation with NaNs made canonical and, with `ftz`, subnormal sources and results flushed.
template <class F, bool ftz, class = typename Signature<F>::Arguments>
struct Tidy;
template <class F, bool ftz, class... A>
struct Tidy<F, ftz, std::tuple<A...>> {
  static constexpr bool kCostly = Costly<F>;
  auto operator()(A... a) const -> typename Signature<F>::Result {
    if constexpr (ftz)
      return canonical(flushed(F()(flushed(a)...)));
    else
      return canonical(F()(a...));
  }
};

constexpr uint32_t kFtz = kOwnFlags, kSaturates = kOwnFlags << 1, kRoundingShift = 6;

/// [0, 1]; a NaN becomes +0.
inline float saturated(float v) {
  const float low = v > 0.0f ? v : 0.0f;
  return low < 1.0f ? low : 1.0f;
}
inline double saturated(double v) { return v; }

template <class F, size_t... N>
const Instruction* modified_lanes(Warp& w, const Instruction* i, std::index_sequence<N...>) {
  using T = typename Signature<F>::Result;
  alignas(64) T s[sizeof...(N)][kLanes];
  alignas(64) T r[kLanes];
  const bool ftz = (i->flags & kFtz) != 0, saturates = (i->flags & kSaturates) != 0;
  const T* const sources[] = {w.in<T>(source_of(i, N))...};
  for (size_t n = 0; n < sizeof...(N); ++n)
    for (int l = 0; l < kLanes; ++l) s[n][l] = ftz ? flushed(sources[n][l]) : sources[n][l];
  {
    const RoundingScope scope(static_cast<Rounding>(i->flags >> kRoundingShift & 7));
    // The arrays must be memory that others could see, or the barriers of the scope do not hold for them.
    asm volatile("" ::"r"(s), "r"(r) : "memory");
    for (int l = 0; l < kLanes; ++l) r[l] = F()(s[N][l]...);
  }
  for (int l = 0; l < kLanes; ++l) {
    const T v = ftz ? flushed(r[l]) : r[l];
    r[l] = canonical(saturates ? saturated(v) : v);
  }
  blend(w.out<T>(i->d), r, w.lanes(i));
  return i + 1;
}
/// The operation with what rarely occurs, by flags: .sat, directed rounding.
template <class F>
const Instruction* modified(Warp& w, const Instruction* i) {
  return modified_lanes<F>(w, i, std::make_index_sequence<Signature<F>::kCount>());
}

/// Emits F with the modifiers .ftz, .sat and a rounding that the instruction has.
template <class F>
void emit_rounded(Lowering& l, Type type) {
  const Rounding r = rounding(l);
  const bool ftz = l.has("ftz");
  constexpr size_t kCount = Signature<F>::kCount;
  if (r == Rounding::nearest && !l.has("sat")) {
    emit_operation(l, {ftz ? each<Tidy<F, true>> : each<Tidy<F, false>>, kCount}, type);
  } else {
    emit_operation(l, {modified<F>, kCount}, type).flags |=
        (ftz ? kFtz : 0u) | (l.has("sat") ? kSaturates : 0u) | static_cast<uint32_t>(r) << kRoundingShift;
  }
}
/// Emits F, which knows no rounding.
template <class F>
void emit_tidy(Lowering& l, Type type) {
  emit_operation(l, {l.has("ftz") ? each<Tidy<F, true>> : each<Tidy<F, false>>, Signature<F>::kCount}, type);
}

// min and max: a NaN loses against a number unless `nan` (.NaN); -0 is less than +0.
template <class T, bool is_min, bool nan>
struct Extremum {
  T operator()(T a, T b) const {
    // Only zeros differ in bits among equal numbers.
    const auto x = bits_of(a), y = bits_of(b);
    const T equal = std::bit_cast<T>(is_min ? x | y : x & y);
    const T ordered = is_min ? (a < b ? a : b < a ? b : equal) : (a < b ? b : b < a ? a : equal);
    if constexpr (nan)
      return a != a ? a : b != b ? b : ordered;
    else
      return a != a ? b : b != b ? a : ordered;
  }
};

}  // namespace emulator::ptx
