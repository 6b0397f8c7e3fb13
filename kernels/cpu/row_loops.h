// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/cpu/panel_product_loops.h"

namespace weft::kernels::cpu {

/// Products of a few rows with one vector: they read each row once, where it lies. T: float or double.
template <class T>
struct RowLoops {
  static constexpr int kRows = 4;  ///< at most, in one call
  /// sums[i] = the sum of rows[i][k] x[k] over n elements.
  void (*dots)(T* sums, const T* const* rows, int count, const T* x, int64_t n);
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

  template <int Rows>
  static void some_dots(T* sums, const T* const* rows, const T* x, int64_t n) {
    V sum[Rows][2] = {};
    int64_t k = 0;
    for (; k + 2 * Lanes <= n; k += 2 * Lanes)
#pragma GCC unroll 4
      for (int i = 0; i < Rows; ++i) {
        sum[i][0] += Load::load(rows[i] + k) * Load::load(x + k);
        sum[i][1] += Load::load(rows[i] + k + Lanes) * Load::load(x + k + Lanes);
      }
#pragma GCC unroll 4
    for (int i = 0; i < Rows; ++i) {
      sums[i] = total<Lanes>(sum[i][0] + sum[i][1]);
      for (int64_t rest = k; rest < n; ++rest) sums[i] += rows[i][rest] * x[rest];
    }
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

  static void dots(T* sums, const T* const* rows, int count, const T* x, int64_t n) {
    if (count == 4) return some_dots<4>(sums, rows, x, n);
    for (int i = 0; i < count; ++i) some_dots<1>(sums + i, rows + i, x, n);
  }
  static void add_rows(T* y, const T* const* rows, int count, const T* factors, int64_t n) {
    if (count == 4) return add_some<4>(y, rows, factors, n);
    for (int i = 0; i < count; ++i) add_some<1>(y, rows + i, factors + i, n);
  }

  static constexpr RowLoops<T> kTable{dots, add_rows};
};

}  // namespace
}  // namespace weft::kernels::cpu
