// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "kernels/half.h"

namespace weft {

/// Four random words.
struct Philox4 {
  uint32_t word[4];
};

inline constexpr int kPhiloxRounds = 10;

/// One round over the counter c0 … c3 with the key k0, k1, (next_philox_key() gives the next round's).
WEFT_HD void philox_round(uint32_t& c0, uint32_t& c1, uint32_t& c2, uint32_t& c3, uint32_t k0, uint32_t k1) {
  const uint64_t p0 = static_cast<uint64_t>(0xD2511F53u) * c0;
  const uint64_t p1 = static_cast<uint64_t>(0xCD9E8D57u) * c2;
  c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
  c1 = static_cast<uint32_t>(p1);
  c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
  c3 = static_cast<uint32_t>(p0);
}

WEFT_HD void next_philox_key(uint32_t& k0, uint32_t& k1) {
  k0 += 0x9E3779B9u;
  k1 += 0xBB67AE85u;
}

/// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): a bijection of the 128-bit
/// counter keyed by the 64-bit key; the upper half of the counter is the stream id.
WEFT_HD Philox4 philox(uint64_t key, uint64_t counter, uint64_t stream = 0) {
  uint32_t c0 = static_cast<uint32_t>(counter), c1 = static_cast<uint32_t>(counter >> 32);
  uint32_t c2 = static_cast<uint32_t>(stream), c3 = static_cast<uint32_t>(stream >> 32);
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < kPhiloxRounds; ++round) {
    philox_round(c0, c1, c2, c3, k0, k1);
    next_philox_key(k0, k1);
  }
  return {{c0, c1, c2, c3}};
}

/// A word as a float in [0, 1): 24 bits, every value a multiple of 2^-24.
WEFT_HD float uniform01(uint32_t word) { return static_cast<float>(word >> 8) * 5.9604644775390625e-8f; }

/// Two words as a double in [0, 1): 53 bits.
WEFT_HD double uniform01(uint32_t high, uint32_t low) {
  const uint64_t bits = (static_cast<uint64_t>(high) << 32 | low) >> 11;
  return static_cast<double>(bits) * 1.1102230246251565e-16;
}

}  // namespace weft
