// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <utility>

namespace weft::kernels::cpu {

inline constexpr int kEight = 8;  ///< rows and columns that are transposed at once

template <class C>
struct Eight {
  typedef C Type __attribute__((vector_size(kEight * sizeof(C))));
  typedef C InMemory __attribute__((vector_size(kEight * sizeof(C)), aligned(sizeof(C)), may_alias));
};

/// Exchanges bit `Bit` of the row's and the column's numbers, in two rows whose numbers differ in this bit.
template <int Bit, class V, int... J>
void exchange(V& one, V& other, std::integer_sequence<int, J...>) {
  const V low = one, high = other;
  one = __builtin_shufflevector(low, high, ((J & Bit) != 0 ? kEight + J - Bit : J)...);
  other = __builtin_shufflevector(low, high, ((J & Bit) != 0 ? kEight + J : J + Bit)...);
}

/// to[j * step + i] = rows[i][at + j], eight by eight.
template <class C>
void transpose_eight(const C* const* rows, int64_t at, C* to, int64_t step) {
  typename Eight<C>::Type v[kEight];
#pragma GCC unroll 8
  for (int i = 0; i < kEight; ++i) v[i] = *reinterpret_cast<const typename Eight<C>::InMemory*>(rows[i] + at);
  constexpr std::make_integer_sequence<int, kEight> all;
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) exchange<4>(v[i], v[i + 4], all);
#pragma GCC unroll 4
  for (int i : {0, 1, 4, 5}) exchange<2>(v[i], v[i + 2], all);
#pragma GCC unroll 4
  for (int i : {0, 2, 4, 6}) exchange<1>(v[i], v[i + 1], all);
#pragma GCC unroll 8
  for (int j = 0; j < kEight; ++j) *reinterpret_cast<typename Eight<C>::InMemory*>(to + j * step) = v[j];
}

}  // namespace weft::kernels::cpu
