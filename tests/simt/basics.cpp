// SPDX-License-Identifier: Apache-2.0
#define WEFT_DEVICE simt
#include "tests/simt/basics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "tests/simt/device_array.h"

namespace weft::tests {
namespace {

namespace simt = kernels::simt;

std::mt19937 generator{std::random_device{}()};

std::vector<float> random_floats(size_t n) {
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& value : values) value = normal(generator);
  return values;
}

TEST(Basics, EveryThreadOfEveryBlockRunsOnce) {
  for_each_schedule([] {
    const unsigned shapes[][6] = {{1, 1, 1, 1, 1, 1}, {3, 2, 2, 7, 5, 3}, {5, 1, 1, 1024, 1, 1}, {1, 4, 3, 33, 1, 2}};
    for (const auto& s : shapes) {
      const unsigned blocks = s[0] * s[1] * s[2], threads = s[3] * s[4] * s[5];
      DeviceArray<int> out(blocks * threads);
      simt::indices(kSimt, out.data(), s[0], s[1], s[2], s[3], s[4], s[5]);
      const std::vector<int> got = out.host();
      for (unsigned b = 0; b < blocks; ++b)
        for (unsigned t = 0; t < threads; ++t) ASSERT_EQ(got[b * threads + t], static_cast<int>(b * 10000 + t));
    }
  });
}

TEST(Basics, AGridOfSizeZeroIsNothingToDo) {
  DeviceArray<float> x(1);
  kernels::View empty = x.view();
  empty.sizes[0] = 0;
  simt::scale(kSimt, empty, empty, 2.0f);
}

TEST(Basics, GridStrideLoopInEveryFloatingType) {
  for_each_schedule([] {
    const std::vector<float> x = random_floats(100003);
    const DeviceArray<float> dx(x), dy(x.size());
    simt::scale(kSimt, dy.view(), dx.view(), 3.0f);
    const std::vector<float> y = dy.host();
    for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], x[i] * 3.0f);

    const DeviceArray<bf16> bx(std::vector<bf16>(x.begin(), x.end())), by(x.size());
    simt::scale(kSimt, by.view(), bx.view(), 3.0f);
    const std::vector<bf16> b = by.host();
    for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(float(b[i]), float(bf16(float(bf16(x[i])) * 3.0f)));
  });
}

TEST(Basics, SharedMemoryAndBarriers) {
  for_each_schedule([] {
    for (const unsigned threads : {1u, 31u, 32u, 33u, 100u, 256u}) {
      const unsigned blocks = 17;
      const std::vector<float> x = random_floats(blocks * threads);
      const DeviceArray<float> dx(x), dy(x.size());
      simt::reverse(kSimt, dy.data(), dx.data(), blocks, threads);
      const std::vector<float> y = dy.host();
      for (unsigned b = 0; b < blocks; ++b)
        for (unsigned t = 0; t < threads; ++t) ASSERT_EQ(y[b * threads + t], x[b * threads + threads - 1 - t]);
    }
  });
}

TEST(Basics, AtomicsAreAtomicAcrossBlocks) {
  for_each_schedule([] {
    const int n = 20000;
    std::vector<int> keys(n), expected(16);
    for (int& key : keys) ++expected[static_cast<size_t>(key = static_cast<int>(generator() % 16))];
    const DeviceArray<int> dkeys(keys), bins(std::vector<int>(16));
    const DeviceArray<float> sum(std::vector<float>(1));
    simt::histogram(kSimt, bins.data(), sum.data(), dkeys.data(), n);
    EXPECT_EQ(bins.host(), expected);
    EXPECT_EQ(sum.host()[0], static_cast<float>(n));
  });
}

TEST(Basics, NewDeviceMemoryIsNaN) {
  const DeviceArray<float> fresh(1000);
  for (const float value : fresh.host()) ASSERT_TRUE(std::isnan(value));
}

TEST(Basics, ImpossibleGeometryIsAnError) {
  const DeviceArray<int> out(1);
  EXPECT_EQ(error_of([&] { simt::indices(kSimt, out.data(), 1, 1, 1, 1025, 1, 1); }),
            "indices: grid (1,1,1), block (1025,1,1), 0 bytes of dynamic shared memory: "
            "invalid configuration argument (cudaErrorInvalidConfiguration)");
  EXPECT_THAT(error_of([&] {
                simt::indices({{DeviceKind::simt, 1}, nullptr}, out.data(), 1, 1, 1, 1, 1, 1);
              }),
              testing::HasSubstr("invalid device ordinal"));
}

}  // namespace
}  // namespace weft::tests
