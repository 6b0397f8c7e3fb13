// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "kernels/dtype.h"

namespace weft::tests {

/// The distance from 1 to the next number of a dtype.
inline double epsilon_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 0x1p-52;
    case DType::f32:
      return 0x1p-23;
    case DType::f16:
      return 0x1p-10;
    case DType::bf16:
      return 0x1p-7;
    default:
      return 0;
  }
}

/// How far a result may lie from its f64 reference: a relative error in the L2 norm, and the largest error of one
/// element relative to the largest element. Each element may lie `floor` away beyond that.
struct Tolerance {
  double norm = 0, largest = 0, floor = 0;
  Tolerance times(double factor) const { return {norm * factor, largest * factor, floor * factor}; }
};

/// For results of `dtype` whose sums over K terms are kept in f32 (f64 for f64): one rounding of the result plus the
/// random walk of K roundings of the sum. c covers the formula's own few operations. Small numbers of f16 (below 2^-14)
/// are 2^-24 apart: no relative error bounds their rounding.
inline Tolerance tolerance(DType dtype, int64_t K = 1, double c = 4) {
  if (!is_floating(dtype)) return {};
  const double sum = epsilon_of(dtype == DType::f64 ? DType::f64 : DType::f32);
  const double norm = epsilon_of(dtype) + c * sum * std::sqrt(static_cast<double>(std::max<int64_t>(K, 1)));
  return {norm, 4 * norm, dtype == DType::f16 ? 0x1p-25 : 0};
}

/// Equal within the tolerance; NaN on either side fails unless both have it. Infinities must agree. Errors are relative
/// to `sizes`: the reference, or, where a result is a difference of larger rounded numbers, the sum of their sizes.
inline testing::AssertionResult near(const std::vector<double>& got, const std::vector<double>& want, Tolerance allowed,
                                     const std::vector<double>& sizes) {
  if (got.size() != want.size())
    return testing::AssertionFailure() << "expected " << want.size() << " elements, got " << got.size();
  double difference = 0, norm = 0, largest = 0, scale = 0;
  size_t worst = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const bool same = got[i] == want[i] || (std::isnan(got[i]) && std::isnan(want[i]));
    if (same && !std::isfinite(want[i])) continue;
    if (!std::isfinite(got[i]) || !std::isfinite(want[i]))
      return testing::AssertionFailure() << "element " << i << ": expected " << want[i] << ", got " << got[i];
    const double d = std::max(std::abs(got[i] - want[i]) - allowed.floor, 0.0);
    difference += d * d;
    norm += sizes[i] * sizes[i];
    scale = std::max(scale, std::abs(sizes[i]));
    if (d > largest) largest = d, worst = i;
  }
  const double tiny = 1e-30;  // a reference of zeros wants zeros
  const double relative = std::sqrt(difference) / std::max(std::sqrt(norm), tiny);
  const double element = largest / std::max(scale, tiny);
  if (relative <= allowed.norm && element <= allowed.largest) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "relative error " << relative << " (allowed " << allowed.norm
                                     << "), largest element error " << element << " (allowed " << allowed.largest
                                     << ") at " << worst << ": expected " << want[worst] << ", got " << got[worst];
}

inline testing::AssertionResult near(const std::vector<double>& got, const std::vector<double>& want,
                                     Tolerance allowed) {
  return near(got, want, allowed, want);
}

/// The error of `body`, or an empty text.
template <class Body>
std::string error_text(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace weft::tests
