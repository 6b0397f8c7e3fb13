// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "kernels/half.h"

namespace weft::kernels::cuda {

/// Division by a launch constant, as a multiplication and a shift (Granlund and Montgomery,
/// "Division by invariant integers using multiplication", 1994). Dividends lie in [0, 2^31), divisors in [1, 2^31).
class Divider {
 public:
  Divider() = default;
  /// A divisor of 0 (the size of an empty tensor) becomes 1: nothing will be divided.
  explicit Divider(int64_t divisor) : divisor_(static_cast<int>(divisor > 0 ? divisor : 1)) {
    divisor = divisor_;
    while ((int64_t{1} << shift_) < divisor) ++shift_;
    multiplier_ = static_cast<uint32_t>(((uint64_t{1} << 32) * ((uint64_t{1} << shift_) - divisor)) / divisor + 1);
  }

  WEFT_HD int divisor() const { return divisor_; }
  WEFT_HD int quotient(int dividend) const {
    const uint32_t n = static_cast<uint32_t>(dividend);
    const uint32_t high = static_cast<uint32_t>((static_cast<uint64_t>(n) * multiplier_) >> 32);
    return static_cast<int>((high + n) >> shift_);
  }
  /// Splits dividend = quotient * divisor + rest: returns the quotient, sets `dividend` to the rest.
  WEFT_HD int split(int& dividend) const {
    const int q = quotient(dividend);
    dividend -= q * divisor_;
    return q;
  }

 private:
  int divisor_ = 1;
  uint32_t multiplier_ = 1;
  int shift_ = 0;
};

}  // namespace weft::kernels::cuda
