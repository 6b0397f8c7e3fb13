// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/contracts/philox.h"

namespace weft {

/// A random permutation of 0 … n-1; permutation_of() makes one. A Feistel network of 16 rounds over two halves of the
/// bits, of which the upper one may have a bit more (VariPhilox: Mitchell et al., "Bandwidth-optimal random shuffling
/// for GPUs", TOPC 2022). A round multiplies one half by a random word, adds another, and changes the other half by the
/// middle bits of the sum (Dietzfelbinger 1996): by xor, or by addition, so that odd permutations occur.
struct Permutation {
  static constexpr int kPairs = 8;  ///< pairs of rounds
  int64_t n;
  int low, high;             ///< bits of the halves
  uint64_t keys[kPairs][4];  ///< words of 32 bits: row i is philox(key, counter, i)

  /// The halves of the smallest number of bits that holds n. With fewer than 6 bits some orders would be likelier.
  WEFT_HD void set_size(int64_t size) {
    n = size;
    int bits = 6;
    while ((static_cast<uint64_t>(1) << bits) < static_cast<uint64_t>(n)) ++bits;
    low = bits / 2;
    high = bits - low;
  }
  WEFT_HD void set_keys(uint64_t key, uint64_t counter, int pair) {
    const Philox4 block = philox(key, counter, static_cast<uint64_t>(pair));
    for (int i = 0; i < 4; ++i) keys[pair][i] = block.word[i];
  }
  WEFT_HD static uint64_t mask(int bits) { return (static_cast<uint64_t>(1) << bits) - 1; }
  /// The first of the middle bits of a product whose left factor has `bits`.
  WEFT_HD static int middle(int bits) { return bits < 16 ? bits : 16; }

  /// One step: a bijection of the numbers of low + high bits.
  WEFT_HD uint64_t walk(uint64_t value) const {
    const auto product = [](uint64_t half, uint64_t word) {  // both have 32 bits
      return static_cast<uint64_t>(static_cast<uint32_t>(half)) * static_cast<uint32_t>(word);
    };
    uint64_t left = value & mask(low), right = value >> low;
    for (const auto& key : keys) {
      right = (right ^ ((product(left, key[0]) + key[1]) >> middle(low))) & mask(high);
      left = (left + ((product(right, key[2]) + key[3]) >> middle(high))) & mask(low);
    }
    return right << low | left;
  }

  /// Element `index`, 0 <= index < n: the walk ends when the value falls below n (Black and Rogaway, "Ciphers with
  /// arbitrary finite domains", 2002). Expected steps: below 2, and 64 / n for n below 33.
  WEFT_HD int64_t operator()(int64_t index) const {
    uint64_t value = static_cast<uint64_t>(index);
    do value = walk(value);
    while (value >= static_cast<uint64_t>(n));
    return static_cast<int64_t>(value);
  }
};

/// The permutation of 0 … n-1 that (key, counter) choose, n at least 1.
inline Permutation permutation_of(uint64_t key, uint64_t counter, int64_t n) {
  Permutation order;
  order.set_size(n);
  for (int pair = 0; pair < Permutation::kPairs; ++pair) order.set_keys(key, counter, pair);
  return order;
}

}  // namespace weft
