// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <cstdlib>
#include <cstring>

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
/// That of bf16 (loops_avx512_bf16.cpp), or null where the processor does not multiply bf16.
const PanelKernel<float, uint32_t>* panel_kernel_bf16();

/// Whether this processor runs loops_avx512.cpp (x86-64-v4), and WEFT_CPU=avx2 does not forbid it.
inline bool has_avx512() {
#if defined(__x86_64__)
  const char* wanted = std::getenv("WEFT_CPU");
  if (wanted != nullptr && std::strcmp(wanted, "avx2") == 0) return false;
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

}  // namespace weft::kernels::cpu
