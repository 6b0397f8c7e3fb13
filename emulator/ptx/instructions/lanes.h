// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "emulator/ptx/run/warp.h"

// How a handler computes 32 lanes. An operation is a small class with a const operator() for one lane, mostly without
// branches: each<Operation> is then a handler whose loop the compiler vectorises. The types of its parameters
// and its result say how registers are read and written.

namespace emulator::ptx {

// A destination may be the same register as a source of the same width. Lane l depends on lane l alone all the same.
#if defined(__clang__)
#define EMULATOR_EACH_LANE _Pragma("clang loop vectorize(assume_safety)") for (int l = 0; l < kLanes; ++l)
#else
#define EMULATOR_EACH_LANE _Pragma("GCC ivdep") for (int l = 0; l < kLanes; ++l)
#endif

constexpr uint32_t kAllLanes = 0xffffffffu;

/// The operation applies to inactive lanes as well when it is cheap. A class with `static constexpr bool kCostly =
/// true` is computed for active lanes only.
template <class F>
concept Costly = F::kCostly;

template <class Word>
struct LaneBits {
  alignas(64) Word bit[kLanes];
  constexpr LaneBits() : bit{} {
    for (int l = 0; l < kLanes; ++l) bit[l] = Word{1} << l;
  }
};
template <class Word>
inline constexpr LaneBits<Word> kLaneBits;

/// A lane holds at least 4 bytes: narrower integers lie zero-extended.
template <class T>
using Stored = std::conditional_t<(sizeof(T) < 4), uint32_t, T>;

template <class T>
inline T loaded(Stored<T> word) {
  return static_cast<T>(word);
}
template <class T>
inline Stored<T> stored(T value) {
  if constexpr (sizeof(T) < 4)
    return static_cast<std::make_unsigned_t<T>>(value);
  else
    return value;
}

/// d[l] = r[l] for the given lanes.
template <class T>
inline void blend(T* d, const T* r, uint32_t lanes) {
  using Word = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  EMULATOR_EACH_LANE d[l] = (kLaneBits<Word>.bit[l] & lanes) != 0 ? r[l] : d[l];
}

template <class F, class = decltype(&F::operator())>
struct Signature;
template <class F, class R, class... A>
struct Signature<F, R (F::*)(A...) const> {
  using Result = R;
  using Arguments = std::tuple<A...>;
  static constexpr size_t kCount = sizeof...(A);
};

/// An operation may be made of its instruction, for an immediate.
template <class F>
inline F operation(const Instruction* i) {
  if constexpr (std::is_constructible_v<F, const Instruction&>)
    return F(*i);
  else
    return F();
}

/// The register of the n-th source.
inline Ref source_of(const Instruction* i, size_t n) { return n == 0 ? i->a : n == 1 ? i->b : n == 2 ? i->c : i->aux; }

template <class F, size_t N>
using Argument = std::tuple_element_t<N, typename Signature<F>::Arguments>;

/// The operation for one lane after the other; its sources are arrays of lanes.
template <class F, size_t... N>
inline auto lane_of(Warp& w, const Instruction* i, std::index_sequence<N...>) {
  return [ f = operation<F>(i), sources = std::make_tuple(w.in<Stored<Argument<F, N>>>(source_of(i, N))...) ](int l)
      __attribute__((always_inline)) {
    return stored<typename Signature<F>::Result>(f(loaded<Argument<F, N>>(std::get<N>(sources)[l])...));
  };
}

/// Not all lanes execute. Apart from each(), which needs no stack that way.
template <class F>
[[gnu::noinline]] const Instruction* each_of_some(Warp& w, const Instruction* i, uint32_t lanes) {
  using Result = Stored<typename Signature<F>::Result>;
  const auto one = lane_of<F>(w, i, std::make_index_sequence<Signature<F>::kCount>());
  alignas(64) Result r[kLanes];
  EMULATOR_EACH_LANE r[l] = one(l);
  blend(w.out<Result>(i->d), r, lanes);
  return i + 1;
}

/// The handler of an operation of up to four sources: i->a, b, c and aux.
template <class F>
const Instruction* each(Warp& w, const Instruction* i) {
  const uint32_t lanes = w.lanes(i);
  if constexpr (!Costly<F>)
    if (lanes != kAllLanes) [[unlikely]]
      return each_of_some<F>(w, i, lanes);
  const auto one = lane_of<F>(w, i, std::make_index_sequence<Signature<F>::kCount>());
  auto* const d = w.out<Stored<typename Signature<F>::Result>>(i->d);
  if constexpr (Costly<F>) {
    for (uint32_t left = lanes; left != 0; left &= left - 1) {
      const int l = std::countr_zero(left);
      d[l] = one(l);
    }
  } else {
    EMULATOR_EACH_LANE d[l] = one(l);
  }
  return i + 1;
}

/// The lanes for which a comparison holds.
template <class F>
inline uint32_t lanes_where(const Warp& w, Ref a, Ref b) {
  using T = Argument<F, 0>;
  using Word = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  const Stored<T>* const x = w.in<Stored<T>>(a);
  const Stored<T>* const y = w.in<Stored<T>>(b);
  Word found = 0;
  for (int l = 0; l < kLanes; ++l) found |= F()(loaded<T>(x[l]), loaded<T>(y[l])) ? kLaneBits<Word>.bit[l] : 0;
  return static_cast<uint32_t>(found);
}

}  // namespace emulator::ptx
