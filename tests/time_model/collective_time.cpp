// SPDX-License-Identifier: Apache-2.0
#include "emulator/machine/collective_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace emulator::collective_time {
namespace {

const Cluster& perlmutter() { return *find_cluster("perlmutter"); }
const Cluster& vista() { return *find_cluster("vista"); }

void expect(const Cost& cost, std::string_view algorithm, std::string_view protocol, double us) {
  EXPECT_EQ(cost.algorithm, algorithm);
  EXPECT_EQ(cost.protocol, protocol);
  EXPECT_NEAR(1e6 * cost.seconds, us, 1e-6 * us);
}

TEST(CollectiveTime, ARankAloneWaitsForNobody) {
  for (const auto& cost : {all_reduce(vista(), {1, 1, 1}, 1e9), gather(vista(), {1, 1, 1}, 1e9), pass(vista(), {1, 1, 1}, 1e9)})
    EXPECT_EQ(cost.seconds, 0);
  EXPECT_EQ(transfers(vista(), 0, 0).seconds, 0);
}

TEST(CollectiveTime, FewBytesCostLatencyAndManyCostBandwidth) {
  // Four A100 of a node, 200 GB/s: three steps each way, half of the bandwidth for LL.
  expect(all_reduce(perlmutter(), {4, 1, 4}, 4096), "ring", "LL", 6.6 + 6 * 0.6 + 2 * 0.75 * 4096 / 100e3);
  expect(all_reduce(perlmutter(), {4, 1, 4}, 1e9), "ring", "Simple", 8.4 + 6 * 3.4 + 2 * 0.75 * 1e9 / 200e3);
  expect(gather(perlmutter(), {4, 1, 4}, 1e9), "ring", "Simple", 8.4 + 3 * 3.4 + 0.75 * 1e9 / 200e3);
}

TEST(CollectiveTime, BetweenNodesATreeHasLittleLatency) {
  // 256 nodes of four, no LL128 on Slingshot, 0.8 x 100 GB/s a node.
  expect(all_reduce(perlmutter(), {1024, 256, 4}, 4096), "tree", "LL",
         6.8 + 2 * (3 * 0.6 + 8 * 5.0) + 2 * 4096 / 19e3);
  // Each ring's step inside takes an AMD processor's 3 x 2 us.
  expect(gather(perlmutter(), {8, 2, 4}, 1e9), "ring", "Simple", 8.4 + 6 * 6 + 14 + 0.875 * 1e9 / 80e3);
}

TEST(CollectiveTime, PatIsForNodesOfOneRank) {
  expect(gather(vista(), {1024, 1024, 1}, 1e6), "PAT", "Simple", 8 + 10 * 4 + 1024 * 2.8 + 1e6 * 1023 / 1024 / 30e3);
  // One rank of each node of four: its own card, and PAT as well.
  expect(gather(perlmutter(), {256, 256, 1}, 1e6), "PAT", "Simple", 8 + 8 * 4 + 256 * 2.8 + 1e6 * 255 / 256 / 15e3);
  EXPECT_EQ(all_reduce(vista(), {1024, 1024, 1}, 1e6).algorithm, "tree");
}

TEST(CollectiveTime, ARootsBytesPassEachRank) {
  expect(pass(perlmutter(), {4, 1, 4}, 1e9), "ring", "Simple", 8.4 + 3 * 3.4 + 1e9 / 200e3);
}

TEST(CollectiveTime, TransfersTakeTheSlowerLink) {
  EXPECT_NEAR(1e6 * transfers(perlmutter(), 2e6, 0).seconds, 8.4 + 3.4 + 10, 1e-6);
  EXPECT_NEAR(1e6 * transfers(perlmutter(), 2e6, 2e6).seconds, 8.4 + 14 + 100, 1e-6);
}

TEST(CollectiveTime, EachGpuOfTheModelOfTimeHasAMachineOrNone) {
  EXPECT_EQ(cluster_of_gpu("gh200"), &vista());
  EXPECT_EQ(cluster_of_gpu("a6000"), nullptr);
  EXPECT_EQ(find_cluster("moon"), nullptr);
  EXPECT_THAT(cluster_keys(), testing::HasSubstr("perlmutter, dgx_h100"));
}

}  // namespace
}  // namespace emulator::collective_time
