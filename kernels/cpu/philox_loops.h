// SPDX-License-Identifier: Apache-2.0
#pragma once
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "kernels/contracts/permutation.h"
#include "kernels/cpu/panel_product_loops.h"

namespace weft::kernels::cpu {

inline constexpr int kPhiloxBlocks = 16;  ///< blocks that are computed side by side
inline constexpr int kWalks = 32;         ///< walks likewise

struct PhiloxLoops {
  /// words[4 l + w] = word w of philox(key, counter + l).
  void (*draw)(uint32_t (&words)[4 * kPhiloxBlocks], uint64_t key, uint64_t counter);
  /// Permutation::walk() of each value.
  void (*walk)(uint64_t (&values)[kWalks], const Permutation& order);
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
  static constexpr int kVectors = 2;  ///< per word: four of AVX2 would not fit into the registers
  static constexpr uint64_t kLower = 0xffffffffu;

  static void draw(uint32_t (&words)[4 * kPhiloxBlocks], uint64_t key, uint64_t counter) {
    uint64_t pairs[2][kPhiloxBlocks];
    for (int first = 0; first < kPhiloxBlocks; first += kVectors * Lanes) {
      // The words are the lower halves of c; what the upper halves hold does not matter.
      V c[4][kVectors] = {}, k0 = V{} + (key & kLower), k1 = V{} + (key >> 32);
      uint64_t counters[kVectors * Lanes];
      for (int l = 0; l < kVectors * Lanes; ++l) counters[l] = counter + static_cast<uint64_t>(first + l);
      for (int v = 0; v < kVectors; ++v) {
        c[0][v] = Load::load(counters + v * Lanes);
        c[1][v] = c[0][v] >> 32;
      }
      for (int round = 0; round < kPhiloxRounds; ++round) {
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) {
          const V p0 = product_of_halves(c[0][v], 0xD2511F53u), p1 = product_of_halves(c[2][v], 0xCD9E8D57u);
          c[0][v] = (p1 >> 32) ^ c[1][v] ^ k0;
          c[1][v] = p1;
          c[2][v] = (p0 >> 32) ^ c[3][v] ^ k1;
          c[3][v] = p0;
        }
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
      }
      for (int v = 0; v < kVectors; ++v)
        for (int pair = 0; pair < 2; ++pair)
          Load::store(pairs[pair] + first + v * Lanes, (c[2 * pair][v] & kLower) | c[2 * pair + 1][v] << 32);
    }
    for (int l = 0; l < kPhiloxBlocks; ++l) {
      __builtin_memcpy(words + 4 * l, &pairs[0][l], 8);
      __builtin_memcpy(words + 4 * l + 2, &pairs[1][l], 8);
    }
  }

  static void walk(uint64_t (&values)[kWalks], const Permutation& order) {
    constexpr int kGroup = 4;  // vectors of each half in registers
    const int64_t low = order.low;
    const int64_t from_low = Permutation::middle(order.low), from_high = Permutation::middle(order.high);
    const uint64_t low_mask = Permutation::mask(order.low), high_mask = Permutation::mask(order.high);
    for (uint64_t* at = values; at < values + kWalks; at += kGroup * Lanes) {
      V left[kGroup], right[kGroup];
      for (int v = 0; v < kGroup; ++v) {
        left[v] = Load::load(at + v * Lanes) & low_mask;
        right[v] = Load::load(at + v * Lanes) >> low;
      }
      for (const auto& key : order.keys)
#pragma GCC unroll 4
        for (int v = 0; v < kGroup; ++v) {
          const V up = product_of_halves(left[v], key[0]) + key[1];
          right[v] = (right[v] ^ (up >> from_low)) & high_mask;
          const V down = product_of_halves(right[v], key[2]) + key[3];
          left[v] = (left[v] + (down >> from_high)) & low_mask;
        }
      for (int v = 0; v < kGroup; ++v) Load::store(at + v * Lanes, right[v] << low | left[v]);
    }
  }

  static constexpr PhiloxLoops kTable{draw, walk};
};

}  // namespace
}  // namespace weft::kernels::cpu
