// SPDX-License-Identifier: Apache-2.0
#define WEFT_DEVICE simt
#include "tests/simt/collectives.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "tests/simt/device_array.h"

namespace weft::tests {
namespace {

namespace simt = kernels::simt;

std::mt19937 generator{std::random_device{}()};

TEST(Collectives, EachAgainstItsDefinition) {
  for_each_schedule([] {
    std::vector<int> v(32);
    for (int& value : v) value = static_cast<int>(generator()) >> 1;  // of both signs
    const DeviceArray<int> in(v), out(32 * simt::kCollectiveRows);
    simt::collectives(kSimt, out.data(), in.data());
    const std::vector<int> got = out.host();
    std::vector<unsigned> u(v.begin(), v.end());
    const auto sum = std::accumulate(u.begin(), u.end(), 0u);
    unsigned odd = 0, all_and = ~0u, all_or = 0, all_xor = 0;
    for (int l = 0; l < 32; ++l) odd |= (u[l] & 1u) << l, all_and &= u[l], all_or |= u[l], all_xor ^= u[l];
    const bool same = std::all_of(v.begin(), v.end(), [&](int x) { return (x & 3) == (v[0] & 3); });
    const bool all_seven = std::all_of(v.begin(), v.end(), [&](int x) { return x == v[7]; });
    for (int l = 0; l < 32; ++l) {
      unsigned alike = 0;
      for (int k = 0; k < 32; ++k) alike |= unsigned{(v[k] & 3) == (v[l] & 3)} << k;
      const int expected[simt::kCollectiveRows] = {
          v[5], v[(l + 3) % 32], v[l / 8 * 8 + 1], v[l < 3 ? l : l - 3], v[l % 16 < 3 ? l : l - 3],
          v[l + 7 > 31 ? l : l + 7], v[l % 8 + 7 > 7 ? l : l + 7], v[l ^ 9],
          // Exchanges across groups of 8: a lane may read from a lower group, not from a higher one.
          v[(l ^ 9) >= l / 8 * 8 + 8 ? l : l ^ 9], v[l ^ 1], v[l ^ 1], static_cast<int>(odd), 1, all_seven,
          static_cast<int>(alike), same ? -1 : 0, same, -1, 1, static_cast<int>(sum),
          *std::min_element(v.begin(), v.end()), *std::max_element(v.begin(), v.end()),
          static_cast<int>(*std::min_element(u.begin(), u.end())), static_cast<int>(all_and), static_cast<int>(all_or),
          static_cast<int>(all_xor)};
      for (int r = 0; r < simt::kCollectiveRows; ++r)
        ASSERT_EQ(got[static_cast<size_t>(32 * r + l)], expected[r]) << "row " << r << " lane " << l;
    }
  });
}

TEST(Collectives, PartialMasksOfDivergedHalves) {
  for_each_schedule([] {
    const unsigned threads = 128;
    std::vector<float> x(threads);
    for (float& value : x) value = static_cast<float>(generator() % 1000);  // sums are exact
    const DeviceArray<float> in(x), out(threads);
    simt::half_warps(kSimt, out.data(), in.data(), threads);
    const std::vector<float> got = out.host();
    for (unsigned t = 0; t < threads; ++t)
      ASSERT_EQ(got[t], std::accumulate(x.begin() + t / 16 * 16, x.begin() + t / 16 * 16 + 16, 0.0f));
  });
}

TEST(Collectives, BlockReductionsAndVotes) {
  for_each_schedule([] {
    for (const unsigned threads : {32u, 96u, 256u, 1024u}) {
      const unsigned blocks = 5;
      const int n = 1 + static_cast<int>(generator() % 3000);
      std::vector<float> x(blocks * static_cast<size_t>(n));
      std::normal_distribution<float> normal;
      for (float& value : x) value = normal(generator);
      const DeviceArray<float> dx(x), maxima(blocks);
      const DeviceArray<double> sums(blocks);
      const DeviceArray<int> votes(blocks);
      simt::block_reductions(kSimt, sums.data(), maxima.data(), votes.data(), dx.data(), n, blocks, threads);
      for (unsigned b = 0; b < blocks; ++b) {
        const auto begin = x.begin() + b * n, end = begin + n;
        EXPECT_NEAR(sums.host()[b], std::accumulate(begin, end, 0.0), 1e-10 * n);
        EXPECT_EQ(maxima.host()[b], *std::max_element(begin, end));
        EXPECT_EQ(votes.host()[b], static_cast<int>((threads + 2) / 3) * 16 + 4 + 1);
      }
    }
  });
}

}  // namespace
}  // namespace weft::tests
