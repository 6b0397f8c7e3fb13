// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "kernels/dtype.h"

namespace weft::tests {

/// Half a unit in the last place of 1.
template <class T>
constexpr double eps() {
  return std::is_same_v<T, double>  ? 0x1p-53
         : std::is_same_v<T, float> ? 0x1p-24
         : std::is_same_v<T, f16>   ? 0x1p-11
                                    : 0x1p-8;
}

/// Fresh numbers in [-1, 1), each exactly a T.
template <class T>
std::vector<T> random_values(size_t count) {
  static std::mt19937_64 generator(std::random_device{}());
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<T> values(count);
  for (T& value : values) {
    if constexpr (std::is_same_v<T, double>)
      value = uniform(generator);
    else
      value = T(static_cast<float>(uniform(generator)));
  }
  return values;
}

template <class T>
double number(T value) {
  if constexpr (std::is_same_v<T, double>)
    return value;
  else
    return static_cast<double>(static_cast<float>(value));
}

/// A sum as it should be, and the sum of its terms' absolute values: the scale of rounding errors.
struct Reference {
  double value = 0, magnitude = 0;
  void add(double term) {
    value += term;
    magnitude += std::abs(term);
  }
};

/// Each result lies within rounding of its reference: once to T, and `terms` times in the type of the sums. NaN fails.
template <class T>
void expect_close(const std::vector<T>& results, const std::vector<Reference>& references, int64_t terms) {
  ASSERT_EQ(results.size(), references.size());
  const double sum_eps = eps<Accumulate<T>>();
  int failures = 0;
  for (size_t i = 0; i < results.size() && failures < 5; ++i) {
    const auto [value, magnitude] = references[i];
    const double tolerance = 1.01 * eps<T>() * std::abs(value) + sum_eps * (4 + 2 * std::sqrt(terms)) * magnitude +
                             (std::is_same_v<T, f16> ? 0x1p-25 : 0);
    const bool close = std::abs(number(results[i]) - value) <= tolerance;
    failures += !close;
    EXPECT_TRUE(close) << "element " << i << ": expected " << value << " within " << tolerance << ", got "
                       << number(results[i]);
  }
}

}  // namespace weft::tests
