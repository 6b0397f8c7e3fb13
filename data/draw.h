// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <cstdint>

#include "kernels/contracts/philox.h"

namespace weft {

// Orders of samples, which runs and their checkpoints record. Ops draw the cheaper kernels/contracts/permutation.h.

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

namespace weft::data {

/// The random numbers of one sample: a pure function of (key, counter), so that an augmentation does not depend on
/// which worker or which rank makes it. Two draws with the same key and counter yield the same numbers in the same
/// order.
class Draw {
 public:
  Draw(uint64_t key, uint64_t counter) : key_(key), counter_(counter) {}

  /// The draw of sample `index` in `epoch`.
  static Draw of_sample(uint64_t seed, int64_t epoch, int64_t index) {
    return Draw(seed ^ 0xDA7A5E7D00000000ull, static_cast<uint64_t>(epoch) << 40 | static_cast<uint64_t>(index));
  }

  /// 32 random bits.
  uint32_t word() {
    if (next_ % 4 == 0) words_ = philox(key_, counter_, next_ / 4);
    return words_.word[next_++ % 4];
  }
  /// In [0, 1).
  double uniform() { return uniform01(word()); }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  /// In 0 … n-1; n must be positive.
  int64_t below(int64_t n) {
    return static_cast<int64_t>(static_cast<uint64_t>(word()) * static_cast<uint64_t>(n) >> 32);
  }
  bool coin(double probability = 0.5) { return uniform() < probability; }
  /// Standard normal (Box and Muller 1958).
  double normal() {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    return radius * std::cos(6.283185307179586 * uniform());
  }

 private:
  uint64_t key_;
  uint64_t counter_;
  uint64_t next_ = 0;
  Philox4 words_{};
};

}  // namespace weft::data
