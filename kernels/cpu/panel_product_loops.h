// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/cpu/panel_product.h"

// One text for every instruction set; included by loops_avx*.cpp only. Everything is in an anonymous namespace and
// nothing is from the standard library. So no function compiled for AVX-512 is linked into code for other CPUs. Vectors
// are the compiler's, which fuses a * b + c (-ffp-contract=fast).

namespace weft::kernels::cpu {
namespace {

/// Lanes elements as a vector. Unaligned in memory.
template <class T, int Lanes>
struct Vector {
  typedef T Type __attribute__((vector_size(Lanes * sizeof(T))));
  typedef T InMemory __attribute__((vector_size(Lanes * sizeof(T)), aligned(sizeof(T)), may_alias));
};

/// sum + factor * factors, lane by lane.
struct MultiplyAdd {
  template <class T, class V>
  [[gnu::always_inline]] static V add(V sum, T factor, V factors) {
    return sum + factor * factors;
  }
};

/// kRows: the accumulators of this number of rows, two vectors each, fit into the registers beside the factors.
template <class T, int Lanes, int kRows, class Factor = T, class Multiply = MultiplyAdd>
struct PanelLoops {
  using V = typename Vector<T, Lanes>::Type;
  using Factors = typename Vector<Factor, Lanes>::Type;
  using Product = PanelProduct<T, Factor>;

  template <class E>
  static typename Vector<E, Lanes>::Type load(const E* p) {
    return *reinterpret_cast<const typename Vector<E, Lanes>::InMemory*>(p);
  }
  static void store(T* p, V v) { *reinterpret_cast<typename Vector<T, Lanes>::InMemory*>(p) = v; }

  /// Ahead: prefetches the factors of the next rows from a distant cache: their runs are too short for the hardware
  /// prefetcher. With near factors this costs a tenth of the speed.
  template <int Rows, int Vectors, bool Ahead>
  [[gnu::noinline]] static void some_rows(const Product& p, int64_t row) {
    V sum[Rows][Vectors] = {};
    T* const c = p.c + row * p.c_row;
#pragma GCC unroll 12
    for (int i = 0; i < Rows; ++i) {  // c may lie far away, and it has all of the loop's time to come
      __builtin_prefetch(c + i * p.c_row, 1);
      __builtin_prefetch(c + i * p.c_row + Vectors * Lanes - 1, 1);
    }
    const Factor *a = p.a + (p.a_strip != 0 ? row / kRows * p.a_strip : row * p.a_row), *b = p.b;
    const int64_t a_row = p.a_row, a_depth = p.a_depth, b_depth = p.b_depth;
    for (int64_t k = 0; k < p.depth; ++k, a += a_depth, b += b_depth) {
      if (Ahead && k % 16 == 0) {
#pragma GCC unroll 12
        for (int i = 0; i < Rows; ++i) __builtin_prefetch(a + (Rows + i) * a_row);
      }
      Factors factors[Vectors];
#pragma GCC unroll 2
      for (int v = 0; v < Vectors; ++v) factors[v] = load(b + v * Lanes);
#pragma GCC unroll 12
      for (int i = 0; i < Rows; ++i) {
        const Factor factor = a[i * a_row];
#pragma GCC unroll 2
        for (int v = 0; v < Vectors; ++v) sum[i][v] = Multiply::add(sum[i][v], factor, factors[v]);
      }
    }
    const T alpha = p.alpha;
    const bool add = p.add;
#pragma GCC unroll 12
    for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 2
      for (int v = 0; v < Vectors; ++v) {
        T* const to = c + i * p.c_row + v * Lanes;
        store(to, add ? load(to) + alpha * sum[i][v] : alpha * sum[i][v]);
      }
    }
  }

  template <int Rows, int Vectors>
  static void rest(const Product& p, int64_t row, int64_t count) {
    if constexpr (Rows > 0) {
      if (count == Rows)
        some_rows<Rows, Vectors, false>(p, row);
      else
        rest<Rows - 1, Vectors>(p, row, count);
    }
  }

  template <int Vectors, bool Ahead>
  static void all_rows(const Product& p) {
    int64_t row = 0;
    for (; row + kRows <= p.rows; row += kRows) some_rows<kRows, Vectors, Ahead>(p, row);
    rest<kRows - 1, Vectors>(p, row, p.rows - row);
  }

  static void product(const Product& p) {
    if (p.only_half)
      all_rows<1, false>(p);
    else if (p.ahead)
      all_rows<2, true>(p);
    else
      all_rows<2, false>(p);
  }

  static constexpr PanelKernel<T, Factor> kTable{2 * Lanes, kRows, product};
};

}  // namespace
}  // namespace weft::kernels::cpu
