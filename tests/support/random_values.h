// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "tests/support/device_array.h"

namespace weft::tests {

/// Fresh numbers in each run; a failing test prints the seed, and WEFT_TEST_SEED repeats it.
inline std::mt19937_64& generator() {
  static const uint64_t seed = [] {
    const char* text = std::getenv("WEFT_TEST_SEED");
    const uint64_t chosen = text ? std::strtoull(text, nullptr, 10) : std::random_device{}();
    std::printf("WEFT_TEST_SEED=%llu\n", static_cast<unsigned long long>(chosen));
    return chosen;
  }();
  static std::mt19937_64 numbers(seed);
  return numbers;
}

/// n numbers uniform in [low, high), as `dtype` stores them.
inline std::vector<double> uniform(int64_t n, DType dtype = DType::f64, double low = -1, double high = 1) {
  std::uniform_real_distribution<double> distribution(low, high);
  std::vector<double> values(static_cast<size_t>(n));
  for (double& value : values) value = rounded(distribution(generator()), dtype);
  return values;
}

/// n integers in [low, high].
inline std::vector<double> integers(int64_t n, int64_t low, int64_t high) {
  std::uniform_int_distribution<int64_t> distribution(low, high);
  std::vector<double> values(static_cast<size_t>(n));
  for (double& value : values) value = static_cast<double>(distribution(generator()));
  return values;
}

inline int64_t pick(int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(generator());
}

}  // namespace weft::tests
