// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/contracts/philox.h"

// Orders of samples, which runs and their checkpoints record. Ops draw the cheaper kernels/contracts/permutation.h.
namespace weft {

inline constexpr uint64_t kPermutedRounds = 6;

/// Half of the smallest even number of bits that holds n.
inline int permuted_bits(int64_t n) {
  int half = 1;
  while ((static_cast<uint64_t>(1) << (2 * half)) < static_cast<uint64_t>(n)) ++half;
  return half;
}

/// Element `index` of a random permutation of 0 … n-1: a 6-round balanced Feistel network over the smallest even number
/// of bits for n, with round keys from Philox. The walk ends when the value falls below n (Black and Rogaway, "Ciphers
/// with arbitrary finite domains", 2002). Needs 0 <= index < n. Expected walks: below 4.
inline int64_t permuted(uint64_t key, uint64_t counter, int64_t n, int64_t index) {
  const int half = permuted_bits(n);
  const uint64_t mask = (static_cast<uint64_t>(1) << half) - 1;
  uint64_t value = static_cast<uint64_t>(index);
  do {
    uint64_t left = value >> half, right = value & mask;
    for (uint64_t round = 0; round < kPermutedRounds; ++round) {
      const Philox4 f = philox(key, counter, right << 3 | round);
      const uint64_t mixed = (static_cast<uint64_t>(f.word[0]) << 32 | f.word[1]) & mask;
      const uint64_t next = left ^ mixed;
      left = right;
      right = next;
    }
    value = left << half | right;
  } while (value >= static_cast<uint64_t>(n));
  return static_cast<int64_t>(value);
}

}  // namespace weft
