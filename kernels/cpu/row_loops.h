// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/cpu/panel_product_loops.h"

namespace weft::kernels::cpu {

/// Products of a few rows with a few vectors: they read each row where it lies. T: float or double.
template <class T>
struct RowLoops {
  static constexpr int kRows = 4;  ///< that one pass reads
  /// sums[v * pitch + i] = the sum of rows[i][k] x[v][k] over n elements. The order of the terms depends on n alone.
  void (*dots)(T* sums, int64_t pitch, const T* const* rows, int count, const T* const* x, int vectors, int64_t n);
  /// y[j] += the sum of factors[i] rows[i][j] over the rows, for n elements.
  void (*add_rows)(T* y, const T* const* rows, int count, const T* factors, int64_t n);
};

/// The loops for this processor (loops_avx2.cpp, loops_avx512.cpp).
template <class T>
const RowLoops<T>& row_loops();

namespace {  // compiled once for each instruction set

template <class T, int Lanes>
struct RowLoopsOf {
  using V = typename Vector<T, Lanes>::Type;
  using Load = PanelLoops<T, Lanes, 1>;

  template <int Left>
  [[gnu::always_inline]] static T total(typename Vector<T, Left>::Type sums) {
    if constexpr (Left == 1) {
      return sums[0];
    } else {
      typename Vector<T, Left / 2>::Type low, high;
      __builtin_memcpy(&low, &sums, sizeof low);
      __builtin_memcpy(&high, reinterpret_cast<const char*>(&sums) + sizeof low, sizeof high);
      return total<Left / 2>(low + high);
    }
  }

  template <int Rows, int Vectors>
  static void some_dots(T* sums, int64_t pitch, const T* const* rows, const T* const* x, int64_t n) {
    V sum[Rows][Vectors][2] = {};
    int64_t k = 0;
    for (; k + 2 * Lanes <= n; k += 2 * Lanes)
#pragma GCC unroll 4
      for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 2
        for (int v = 0; v < Vectors; ++v) {
          sum[i][v][0] += Load::load(rows[i] + k) * Load::load(x[v] + k);
          sum[i][v][1] += Load::load(rows[i] + k + Lanes) * Load::load(x[v] + k + Lanes);
        }
#pragma GCC unroll 4
    for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 2
      for (int v = 0; v < Vectors; ++v) {
        T whole = total<Lanes>(sum[i][v][0] + sum[i][v][1]);
        for (int64_t rest = k; rest < n; ++rest) whole += rows[i][rest] * x[v][rest];
        sums[v * pitch + i] = whole;
      }
  }

  /// As many rows at a time as their accumulators fit into the registers.
  template <int Rows, int Vectors>
  static void all_dots(T* sums, int64_t pitch, const T* const* rows, int count, const T* const* x, int64_t n) {
    int i = 0;
    for (; i + Rows <= count; i += Rows) some_dots<Rows, Vectors>(sums + i, pitch, rows + i, x, n);
    for (; i < count; ++i) some_dots<1, Vectors>(sums + i, pitch, rows + i, x, n);
  }

  template <int Rows>
  static void add_some(T* y, const T* const* rows, const T* factors, int64_t n) {
    int64_t j = 0;
    for (; j + Lanes <= n; j += Lanes) {
      V sum = Load::load(y + j);
#pragma GCC unroll 4
      for (int i = 0; i < Rows; ++i) sum += factors[i] * Load::load(rows[i] + j);
      Load::store(y + j, sum);
    }
    for (; j < n; ++j)
      for (int i = 0; i < Rows; ++i) y[j] += factors[i] * rows[i][j];
  }

  static void dots(T* sums, int64_t pitch, const T* const* rows, int count, const T* const* x, int vectors, int64_t n) {
    constexpr int kOfTwo = Lanes * sizeof(T) == 64 ? 4 : 2;  // AVX-512 has twice the registers
    int v = 0;
    for (; v + 2 <= vectors; v += 2) all_dots<kOfTwo, 2>(sums + v * pitch, pitch, rows, count, x + v, n);
    if (v < vectors) all_dots<4, 1>(sums + v * pitch, pitch, rows, count, x + v, n);
  }
  static void add_rows(T* y, const T* const* rows, int count, const T* factors, int64_t n) {
    int i = 0;
    for (; i + 4 <= count; i += 4) add_some<4>(y, rows + i, factors + i, n);
    for (; i < count; ++i) add_some<1>(y, rows + i, factors + i, n);
  }

  static constexpr RowLoops<T> kTable{dots, add_rows};
};

}  // namespace
}  // namespace weft::kernels::cpu
