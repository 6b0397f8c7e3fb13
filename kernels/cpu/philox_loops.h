// SPDX-License-Identifier: Apache-2.0
#pragma once
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "kernels/contracts/philox.h"
#include "kernels/cpu/panel_product_loops.h"

namespace weft::kernels::cpu {

inline constexpr int kPhiloxBlocks = 16;  ///< blocks that are computed side by side

struct PhiloxLoops {
  /// words[4 l + w] = word w of philox(key, counter + l).
  void (*draw)(uint32_t (&words)[4 * kPhiloxBlocks], uint64_t key, uint64_t counter);
  /// One walk of permuted() for 16 values, in halves of which `mask` has the bits.
  void (*walk)(uint64_t (&left)[kPhiloxBlocks], uint64_t (&right)[kPhiloxBlocks], uint64_t key, uint64_t counter,
               uint64_t mask);
};
const PhiloxLoops& philox_avx2();    ///< runs on any processor
const PhiloxLoops& philox_avx512();  ///< where has_avx512()

namespace {  // compiled once for each instruction set

/// The products of the lower halves.
template <class V>
[[gnu::always_inline]] inline V product_of_halves(V a, uint64_t b) {
#if defined(__AVX512F__)  // maskz: GCC 12 warns of what the plain form leaves undefined
  if constexpr (sizeof(V) == 64)
    return (V)_mm512_maskz_mul_epu32(0xff, (__m512i)a, _mm512_set1_epi64(static_cast<int64_t>(b)));
#endif
#if defined(__AVX2__)
  if constexpr (sizeof(V) == 32) return (V)_mm256_mul_epu32((__m256i)a, _mm256_set1_epi64x(static_cast<int64_t>(b)));
#endif
  return (a & 0xffffffffu) * b;
}

template <int Lanes>
struct PhiloxLoopsOf {
  using V = typename Vector<uint64_t, Lanes>::Type;
  using Load = PanelLoops<uint64_t, Lanes, 1>;
  static constexpr int kVectors = kPhiloxBlocks / Lanes;
  static constexpr uint64_t kLower = 0xffffffffu;

  /// philox() of the counters in the lower halves of c; what the upper halves hold does not matter.
  [[gnu::always_inline]] static void blocks(V (&c)[4][kVectors], uint64_t key) {
    uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
    for (int round = 0; round < kPhiloxRounds; ++round) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        const V p0 = product_of_halves(c[0][v], 0xD2511F53u), p1 = product_of_halves(c[2][v], 0xCD9E8D57u);
        c[0][v] = (p1 >> 32) ^ c[1][v] ^ k0;
        c[1][v] = p1;
        c[2][v] = (p0 >> 32) ^ c[3][v] ^ k1;
        c[3][v] = p0;
      }
      next_philox_key(k0, k1);
    }
  }

  static void draw(uint32_t (&words)[4 * kPhiloxBlocks], uint64_t key, uint64_t counter) {
    V c[4][kVectors] = {};
    for (int v = 0; v < kVectors; ++v) {
      for (int l = 0; l < Lanes; ++l) c[0][v][l] = counter + static_cast<uint64_t>(v * Lanes + l);
      c[1][v] = c[0][v] >> 32;
    }
    blocks(c, key);
    uint64_t pairs[2][kPhiloxBlocks];
    for (int v = 0; v < kVectors; ++v)
      for (int pair = 0; pair < 2; ++pair)
        Load::store(pairs[pair] + v * Lanes, (c[2 * pair][v] & kLower) | c[2 * pair + 1][v] << 32);
    for (int l = 0; l < kPhiloxBlocks; ++l) {
      __builtin_memcpy(words + 4 * l, &pairs[0][l], 8);
      __builtin_memcpy(words + 4 * l + 2, &pairs[1][l], 8);
    }
  }

  static void walk(uint64_t (&left)[kPhiloxBlocks], uint64_t (&right)[kPhiloxBlocks], uint64_t key, uint64_t counter,
                   uint64_t mask) {
    V l[kVectors], r[kVectors];
    for (int v = 0; v < kVectors; ++v) l[v] = Load::load(left + v * Lanes), r[v] = Load::load(right + v * Lanes);
    for (uint64_t round = 0; round < kPermutedRounds; ++round) {
      V c[4][kVectors];
      for (int v = 0; v < kVectors; ++v) {
        c[0][v] = V{} + counter;
        c[1][v] = c[0][v] >> 32;
        c[2][v] = r[v] << 3 | round;
        c[3][v] = c[2][v] >> 32;
      }
      blocks(c, key);
      for (int v = 0; v < kVectors; ++v) {
        const V next = l[v] ^ ((c[0][v] << 32 | (c[1][v] & kLower)) & mask);
        l[v] = r[v];
        r[v] = next;
      }
    }
    for (int v = 0; v < kVectors; ++v) Load::store(left + v * Lanes, l[v]), Load::store(right + v * Lanes, r[v]);
  }

  static constexpr PhiloxLoops kTable{draw, walk};
};

}  // namespace
}  // namespace weft::kernels::cpu
