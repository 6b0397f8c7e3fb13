// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <cstdint>

#include "kernels/contracts/philox.h"

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
