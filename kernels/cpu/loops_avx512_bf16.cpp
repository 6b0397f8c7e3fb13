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

__mmask16 first_of(int64_t n) { return static_cast<__mmask16>(n >= 16 ? 0xffff : (1 << n) - 1); }

__m256i rounded(const float* x, __mmask16 mask) {
  return reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(mask, x)));
}

void round_run(void* y, const float* x, int64_t n) {
  for (int64_t i = 0; i < n; i += 16) {
    const __mmask16 mask = first_of(n - i);
    _mm256_mask_storeu_epi16(static_cast<char*>(y) + 2 * i, mask, rounded(x + i, mask));
  }
}

void round_pairs(uint32_t* y, const float* low, const float* high, int64_t n) {
  for (int64_t i = 0; i < n; i += 16) {
    const __mmask16 mask = first_of(n - i);
    __m512i pairs = _mm512_cvtepu16_epi32(rounded(low + i, mask));
    if (high != nullptr)
      pairs = _mm512_or_si512(pairs, _mm512_slli_epi32(_mm512_cvtepu16_epi32(rounded(high + i, mask)), 16));
    _mm512_mask_storeu_epi32(y + i, mask, pairs);
  }
}

float dot(const void* a, const void* b, int64_t n) {
  __m512 sum = _mm512_setzero_ps();
  for (int64_t i = 0; i < n; i += 32) {
    const auto mask = static_cast<__mmask32>(n - i >= 32 ? ~0u : (1u << (n - i)) - 1);
    const auto read = [&](const void* from) {
      return reinterpret_cast<__m512bh>(_mm512_maskz_loadu_epi16(mask, static_cast<const char*>(from) + 2 * i));
    };
    sum = _mm512_dpbf16_ps(sum, read(a), read(b));
  }
  return _mm512_reduce_add_ps(sum);
}

template <int Rows, int Vectors>
void some_dots(float* sums, int64_t pitch, const void* const* rows, const void* const* x, int64_t n) {
  __m512 sum[Rows][Vectors];
#pragma GCC unroll 4
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v) sum[i][v] = _mm512_setzero_ps();
  const auto add = [&](int64_t k, __mmask32 mask) __attribute__((always_inline)) {
    const auto read = [&](const void* from) {
      return reinterpret_cast<__m512bh>(_mm512_maskz_loadu_epi16(mask, static_cast<const char*>(from) + 2 * k));
    };
#pragma GCC unroll 4
    for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 2
      for (int v = 0; v < Vectors; ++v) sum[i][v] = _mm512_dpbf16_ps(sum[i][v], read(rows[i]), read(x[v]));
  };
  int64_t k = 0;
  for (; k + 32 <= n; k += 32) add(k, ~__mmask32{0});
  if (k < n) add(k, static_cast<__mmask32>((1u << (n - k)) - 1));
#pragma GCC unroll 4
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v) sums[v * pitch + i] = _mm512_reduce_add_ps(sum[i][v]);
}

template <int Vectors>
void all_dots(float* sums, int64_t pitch, const void* const* rows, int count, const void* const* x, int64_t n) {
  if (count == 4) return some_dots<4, Vectors>(sums, pitch, rows, x, n);
  for (int i = 0; i < count; ++i) some_dots<1, Vectors>(sums + i, pitch, rows + i, x, n);
}

void dots(float* sums, int64_t pitch, const void* const* rows, int count, const void* const* x, int vectors,
          int64_t n) {
  int v = 0;
  for (; v + 2 <= vectors; v += 2) all_dots<2>(sums + v * pitch, pitch, rows, count, x + v, n);
  if (v < vectors) all_dots<1>(sums + v * pitch, pitch, rows, count, x + v, n);
}

constexpr Bf16Loops kLoops{PanelLoops<float, 16, 12, uint32_t, MultiplyPairs>::kTable, round_run, round_pairs, dot,
                           dots};

}  // namespace

const Bf16Loops* bf16_avx512() { return &kLoops; }
#else
const Bf16Loops* bf16_avx512() { return nullptr; }
#endif

}  // namespace weft::kernels::cpu
