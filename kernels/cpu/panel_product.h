// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace weft::kernels::cpu {

/// c[row, column] = alpha sum over depth of a[row, depth] b[depth, column], added to c where `add`, for one panel of
/// columns: the innermost loops of every product and of Winograd's convolution. The distances are in elements. A Factor
/// may hold several elements of the depth: a uint32_t is two bf16, the first in its lower half.
template <class T, class Factor = T>
struct PanelProduct {
  int64_t rows, depth;
  const Factor* a;
  int64_t a_row, a_depth;
  const Factor* b;
  int64_t b_depth;
  T* c;
  int64_t c_row;
  T alpha = 1;
  int64_t a_strip = 0;     ///< distance of one strip of rows in `a` from the next; 0: as a_row says
  bool only_half = false;  ///< only the panel's first half of columns
  bool add = false;
  bool ahead = false;  ///< a lies in a distant cache
};

/// PanelProduct compiled for one instruction set (panel_product_loops.h).
template <class T, class Factor = T>
struct PanelKernel {
  int panel;  ///< columns
  int strip;  ///< rows whose sums fit into the registers; any number of rows is possible
  void (*product)(const PanelProduct<T, Factor>& p);
};

/// The kernel for this processor (loops_avx2.cpp, loops_avx512.cpp); T is float or double.
template <class T>
const PanelKernel<T>& panel_kernel();

/// Loops over bf16 (loops_avx512_bf16.cpp). Numbers below 2^-126 count as 0, as in the processor's products of bf16.
struct Bf16Loops {
  PanelKernel<float, uint32_t> panel;
  /// n bf16 from f32.
  void (*round)(void* y, const float* x, int64_t n);
  /// n pairs of bf16; the second ones are 0 where `high` is null.
  void (*round_pairs)(uint32_t* y, const float* low, const float* high, int64_t n);
  /// The sum of n products of bf16.
  float (*dot)(const void* a, const void* b, int64_t n);
  /// RowLoops::dots() of bf16.
  void (*dots)(float* sums, int64_t pitch, const void* const* rows, int count, const void* const* x, int vectors,
               int64_t n);
};
/// Null where the processor does not multiply bf16.
const Bf16Loops* bf16_loops();

}  // namespace weft::kernels::cpu
