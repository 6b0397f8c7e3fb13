// SPDX-License-Identifier: Apache-2.0
#define WEFT_DEVICE simt
#include "tests/simt/matmul.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <random>

#include "tests/simt/device_array.h"

namespace weft::tests {
namespace {

namespace simt = kernels::simt;
using simt::MmaBug;
using testing::HasSubstr;
using testing::MatchesRegex;

std::mt19937 generator{std::random_device{}()};

/// Random matrices of type T on the device, and their product in f64.
template <class T>
struct Problem {
  explicit Problem(int n_) : n(n_), c(static_cast<size_t>(n) * n), a(random()), b(random()) {}

  std::vector<T> random() const {
    std::normal_distribution<float> normal;
    std::vector<T> values(static_cast<size_t>(n) * n);
    for (T& value : values) value = T(normal(generator));
    return values;
  }
  /// |c - a b| / |a b| in f64; NaN where c has one.
  double error() const {
    const std::vector<float> got = c.host();
    const std::vector<T> x = a.host(), y = b.host();
    double difference = 0, norm = 0;
    for (int i = 0; i < n; ++i) {
      std::vector<double> row(static_cast<size_t>(n));
      for (int k = 0; k < n; ++k)
        for (int j = 0; j < n; ++j) row[j] += double(float(x[i * n + k])) * double(float(y[k * n + j]));
      for (int j = 0; j < n; ++j) {
        difference += std::pow(row[j] - got[i * n + j], 2);
        norm += row[j] * row[j];
      }
    }
    return std::sqrt(difference / norm);
  }

  int n;
  DeviceArray<float> c;
  DeviceArray<T> a, b;
};

constexpr double kF32Epsilon = 1.2e-7;

TEST(Matmul, TiledInSharedMemory) {
  for_each_schedule([] {
    const Problem<float> p(128);
    simt::tiled_matmul(kSimt, p.c.data(), p.a.data(), p.b.data(), p.n);
    EXPECT_LT(p.error(), kF32Epsilon * std::sqrt(p.n));
  });
}

TEST(Matmul, TensorCoresInBf16AndF16) {
  for_each_schedule([] {
    const Problem<bf16> p(128);
    simt::mma_matmul<bf16>(kSimt, p.c.data(), p.a.data(), p.b.data(), p.n);
    EXPECT_LT(p.error(), kF32Epsilon * std::sqrt(p.n));
    const Problem<f16> q(64);
    simt::mma_matmul<f16>(kSimt, q.c.data(), q.a.data(), q.b.data(), q.n);
    EXPECT_LT(q.error(), kF32Epsilon * std::sqrt(q.n));
  });
}

TEST(Matmul, TensorCoresInTf32) {
  const Problem<float> p(64);
  simt::tf32_matmul(kSimt, p.c.data(), p.a.data(), p.b.data(), p.n);
  EXPECT_LT(p.error(), 1e-3);
  EXPECT_GT(p.error(), 1e-5) << "more exact than 10 bits of significand can be";
}

TEST(Matmul, AMissingWaitGivesNaNOrAReport) {
  const Problem<bf16> p(128);
  std::string error = error_of(
      [&] { simt::mma_matmul<bf16>(kSimt, p.c.data(), p.a.data(), p.b.data(), p.n, MmaBug::waits_for_too_few); });
  if (emulator::source::access_checks())
    EXPECT_THAT(error, MatchesRegex("(.|\n)*data race: read of 16 bytes at matmul.cu:[0-9]+ against the cp.async at "
                                    "matmul.cu:[0-9]+ by (.|\n)*No thread has waited for the copy."));
  else
    EXPECT_TRUE(std::isnan(p.error()));
}

TEST(Matmul, OverwritingWhatOthersStillReadGivesNaNOrAReport) {
  const Problem<bf16> p(128);
  std::string error = error_of([&] {
    simt::mma_matmul<bf16>(kSimt, p.c.data(), p.a.data(), p.b.data(), p.n, MmaBug::no_barrier_before_overwriting);
  });
  if (emulator::source::access_checks())
    EXPECT_THAT(error, MatchesRegex("(.|\n)*data race: write of 16 bytes at matmul.cu:[0-9]+ against the read at "
                                    "matmul.cu:[0-9]+ by (.|\n)*Nothing orders the two(.|\n)*"));
  else
    EXPECT_TRUE(std::isnan(p.error()));
}

TEST(Matmul, ExitWithoutWaitingForCopiesIsAnError) {
  const Problem<bf16> p(64);
  EXPECT_THAT(error_of([&] {
                simt::mma_matmul<bf16>(kSimt, p.c.data(), p.a.data(), p.b.data(), p.n, MmaBug::exits_without_waiting);
              }),
              HasSubstr("exits with 4 cp.async copies that it never waited for, the first "
                        "issued at matmul.cu:"));
}

}  // namespace
}  // namespace weft::tests
