// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/panel_product_loops.h"

#if defined(__AVX512BF16__)
#include <immintrin.h>
#endif

namespace weft::kernels::cpu {

#if defined(__AVX512BF16__)
namespace {

/// sum + the two products of each pair.
struct MultiplyPairs {
  template <class V, class Factors>
  [[gnu::always_inline]] static V add(V sum, uint32_t factor, Factors factors) {
    const __m512i pairs = _mm512_set1_epi32(static_cast<int>(factor));
    return reinterpret_cast<V>(_mm512_dpbf16_ps(reinterpret_cast<__m512>(sum), reinterpret_cast<__m512bh>(pairs),
                                                reinterpret_cast<__m512bh>(factors)));
  }
};

}  // namespace

const PanelKernel<float, uint32_t>* panel_bf16_avx512() {
  return &PanelLoops<float, 16, 12, uint32_t, MultiplyPairs>::kTable;
}
#else
const PanelKernel<float, uint32_t>* panel_bf16_avx512() { return nullptr; }
#endif

}  // namespace weft::kernels::cpu
