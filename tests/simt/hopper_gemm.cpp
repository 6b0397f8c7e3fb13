// SPDX-License-Identifier: Apache-2.0
#define WEFT_DEVICE simt
#include "tests/simt/hopper_gemm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "tests/simt/device_array.h"

// A whole warp-specialised product in clusters, exact in whole numbers; and the reports when a part of it is
// forgotten.

namespace weft::tests {
namespace {

namespace simt = kernels::simt;
using simt::HopperBug;
using testing::HasSubstr;

struct Product {
  Product(int m_, int n_, int k_)
      : m(m_), n(n_), k(k_), a(values(m_ * k_)), b(values(n_ * k_)), c(static_cast<size_t>(m_ * n_)) {
    const std::vector<bf16> x = a.host(), y = b.host();
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) {
        float sum = 0;
        for (int l = 0; l < k; ++l)
          sum += static_cast<float>(x[static_cast<size_t>(i * k + l)]) *
                 static_cast<float>(y[static_cast<size_t>(j * k + l)]);
        expected.push_back(sum);
      }
  }
  static std::vector<bf16> values(int count) {
    static std::mt19937 generator{std::random_device{}()};
    std::uniform_int_distribution<int> uniform(-8, 8);
    std::vector<bf16> values;
    for (int i = 0; i < count; ++i) values.emplace_back(static_cast<float>(uniform(generator)));
    return values;
  }
  /// The error: the report, `wrong numbers`, or nothing.
  std::string outcome(HopperBug bug) {
    const std::string error = error_of([&] { simt::hopper_gemm(kSimt, c.data(), a.data(), b.data(), m, n, k, bug); });
    return !error.empty() ? error : c.host() == expected ? "" : "wrong numbers";
  }

  int m, n, k;
  DeviceArray<bf16> a, b;
  DeviceArray<float> c;
  std::vector<float> expected;
};

TEST(HopperGemm, IsExactInEveryOrder) {
  for (const auto& [m, n, k] : {std::array{256, 128, 320}, std::array{200, 72, 136}, std::array{128, 64, 64}}) {
    Product product(m, n, k);
    for_each_schedule([&] { EXPECT_EQ(product.outcome(HopperBug::none), "") << emulator::source::schedule_seed(); });
  }
}

/// `hopper_gemm_sm90.cu:12`: where the source has the mark.
std::string line_of(const std::string& mark) {
  std::ifstream file(WEFT_SOURCE_DIR "/tests/simt/hopper_gemm_sm90.cu");
  int number = 1;
  for (std::string line; std::getline(file, line); ++number)
    if (line.ends_with("// " + mark)) return "hopper_gemm_sm90.cu:" + std::to_string(number);
  return "no mark " + mark;
}

struct Plant {
  HopperBug bug;
  const char* name;
  const char* says;          ///< in the fixed order, in every build
  const char* checked = "";  ///< in the checked build, in every order
  const char* first = "";    ///< marks whose lines the checked build names
  const char* second = "";
};
void PrintTo(const Plant& plant, std::ostream* out) { *out << plant.name; }

constexpr Plant kPlants[] = {
    {HopperBug::missing_wait, "missing_wait", "more arrivals than the 1 that mbarrier_init expects", "data race: ", "",
     "wgmma"},
    {HopperBug::wrong_phase, "wrong_phase", "more arrivals than the 1 that mbarrier_init expects", "data race: ", "",
     "wgmma"},
    {HopperBug::wrong_swizzle, "wrong_swizzle", "wrong numbers"},
    {HopperBug::missing_proxy_fence, "missing_proxy_fence", "", "Missing: fence_proxy_async() in the thread that wrote",
     "write of c", "store of c"},
    {HopperBug::missing_proxy_fence_after_reads, "missing_proxy_fence_after_reads", "",
     "Missing: fence_proxy_async() in the thread that read", "read of a", "load of a"},
    {HopperBug::result_before_wait, "result_before_wait", "wrong numbers"},
    {HopperBug::tile_overwritten_early, "tile_overwritten_early", "wrong numbers",
     "(missing: wgmma_wait, and a barrier after it)", "", "wgmma"},
    {HopperBug::too_few_bytes, "too_few_bytes", "0 of 1 arrivals and -16 bytes are missing"},
    {HopperBug::too_many_arrivals, "too_many_arrivals", "more arrivals than the 1 that mbarrier_init expects"},
    {HopperBug::too_few_arrivals, "too_few_arrivals", "2 of 4 arrivals and 0 bytes are missing"},
    {HopperBug::misaligned_tile, "misaligned_tile",
     "is not a multiple of 1024, where the pattern of a 128-byte swizzle begins"},
    {HopperBug::no_wgmma_fence, "no_wgmma_fence", "wgmma_fence() must come before a warpgroup's first wgmma"},
    {HopperBug::barriers_not_published, "barriers_not_published",
     "was not published by mbarrier_init_fence() in the thread that made it"},
    {HopperBug::store_source_overwritten, "store_source_overwritten", "wrong numbers", "(missing: tma_store_wait_read)",
     "store of c", "overwrites c"},
    {HopperBug::no_wait_for_the_store, "no_wait_for_the_store", "may still read shared memory: tma_store_commit()"},
    {HopperBug::no_cluster_sync, "no_cluster_sync",
     "block 1 of the cluster may not have begun: cluster_sync() must come before"},
};

class HopperBugs : public testing::TestWithParam<Plant> {};

TEST_P(HopperBugs, AreReportedOrComputeWrongNumbers) {
  Product product(256, 64, 320);
  const Plant& plant = GetParam();
  const bool checks = emulator::source::access_checks();
  if (!checks || !*plant.checked) {
    EXPECT_THAT(product.outcome(plant.bug), HasSubstr(plant.says));
  } else {
    for_each_schedule([&] {
      const std::string text = product.outcome(plant.bug);
      EXPECT_THAT(text, HasSubstr(plant.checked)) << emulator::source::schedule_seed();
      for (const char* mark : {plant.first, plant.second})
        EXPECT_THAT(text, HasSubstr(*mark ? line_of(mark) : "")) << emulator::source::schedule_seed();
    });
  }
  EXPECT_EQ(product.outcome(HopperBug::none), "");
}

INSTANTIATE_TEST_SUITE_P(Simt, HopperBugs, testing::ValuesIn(kPlants),
                         [](const auto& plant) { return std::string(plant.param.name); });

TEST(HopperBugs, AreInTheReadme) {
  std::ifstream file(WEFT_SOURCE_DIR "/emulator/source/README.md");
  const std::string readme((std::istreambuf_iterator<char>(file)), {});
  for (const Plant& plant : kPlants) {
    const size_t begin = readme.find("| " + std::string(plant.name) + " |");
    ASSERT_NE(begin, readme.npos) << plant.name;
    const std::string row = readme.substr(begin, readme.find('\n', begin) - begin);
    EXPECT_THAT(row, HasSubstr(plant.says));
    EXPECT_THAT(row, HasSubstr(plant.checked));
  }
}

TEST(Clusters, ReadEachOthersSharedMemory) {
  const int x = 6, y = 4;
  std::vector<int> values;
  for (int i = 0; i < x * y; ++i) values.push_back(i * i);
  const DeviceArray<int> from(values), sums(values.size()), ranks(values.size());
  for (const auto& [cx, cy] : {std::array{1, 1}, std::array{2, 1}, std::array{3, 2}, std::array{2, 4}})
    for_each_schedule([&] {
      simt::cluster_sums(kSimt, sums.data(), ranks.data(), from.data(), x, y, cx, cy, HopperBug::none);
      const std::vector<int> got = sums.host(), rank = ranks.host();
      for (int by = 0; by < y; ++by)
        for (int bx = 0; bx < x; ++bx) {
          int sum = 0;
          for (int j = 0; j < cy; ++j)
            for (int i = 0; i < cx; ++i)
              sum += 1001 * values[static_cast<size_t>(bx / cx * cx + i + x * (by / cy * cy + j))];
          ASSERT_EQ(got[static_cast<size_t>(bx + x * by)], sum);
          ASSERT_EQ(rank[static_cast<size_t>(bx + x * by)], bx % cx + cx * (by % cy));
        }
    });
}

TEST(Clusters, AreRefusedWhereTheyDoNotFit) {
  const DeviceArray<int> data(std::vector<int>(64));
  const auto error = [&](int x, int y, int cx, int cy) {
    return error_of(
        [&] { simt::cluster_sums(kSimt, data.data(), data.data(), data.data(), x, y, cx, cy, HopperBug::none); });
  };
  EXPECT_THAT(error(5, 2, 2, 1), HasSubstr("invalid cluster size (cudaErrorInvalidClusterSize)"));
  EXPECT_THAT(error(8, 2, 8, 2), HasSubstr("invalid cluster size"));
  const emulator::source::CapabilityScope old(80);
  EXPECT_THAT(error(2, 1, 2, 1), HasSubstr("invalid cluster size"));
}

TEST(Clusters, ReadingTooEarlyIsReported) {
  const DeviceArray<int> data(std::vector<int>(64));
  const std::string text = error_of([&] {
    simt::cluster_sums(kSimt, data.data(), data.data(), data.data(), 2, 1, 2, 1, HopperBug::remote_read_too_early);
  });
  EXPECT_THAT(text, HasSubstr(line_of("remote read")));
  EXPECT_THAT(text, HasSubstr("of block 1 of the cluster"));
}

TEST(Clusters, ExitingTooEarlyIsReported) {
  const DeviceArray<int> data(std::vector<int>(64));
  const std::string text = error_of([&] {
    simt::cluster_sums(kSimt, data.data(), data.data(), data.data(), 2, 1, 2, 1, HopperBug::exits_too_early);
  });
  EXPECT_THAT(text, HasSubstr(line_of("remote read")));
  EXPECT_THAT(text, HasSubstr("of block 1 of the cluster, which has exited: cluster_sync() must come before its end"));
}

}  // namespace
}  // namespace weft::tests
