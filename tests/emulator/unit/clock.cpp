// SPDX-License-Identifier: Apache-2.0
#include "emulator/machine/clock.h"

#include <gtest/gtest.h>

// The order that the race check derives.

namespace emulator {
namespace {

constexpr uintptr_t kCounter = 0x1000, kData = 0x2000;
constexpr int kThread = 3;  // runs the atomics of each block
constexpr uint32_t kLane = 1u << kThread;

/// Three blocks of a launch, which alternate.
struct Blocks {
  LaunchClock launch{3, 1};
  BlockClock blocks[3];

  Blocks() {
    for (uint32_t i = 0; i < 3; ++i) {
      const uint32_t number = launch.first_block() + i;
      blocks[i].begin(launch, number, 32, number, 1);
    }
  }
  BlockClock& operator[](int i) { return blocks[i]; }
  /// Block i writes data; the stamp of the write.
  uint64_t write(int i) {
    blocks[i].global_writes(0, kLane);
    return blocks[i].now() | kThread;
  }
  void fence(int i, Reach reach = Reach::device) { blocks[i].fence(0, kLane, reach); }
  uint64_t write_and_fence(int i) {
    const uint64_t stamp = write(i);
    fence(i);
    return stamp;
  }
  void atomic(int i) { blocks[i].strong(kCounter, nullptr, kThread, {true, true, false, false, Reach::device}); }
  bool knows(int i, uint64_t stamp) { return blocks[i].ordered<false>(stamp, kThread, kData); }
};

TEST(BlockClock, ALaterAtomicKnowsWhatAFenceAndAnEarlierOnePublished) {
  Blocks blocks;
  blocks.atomic(1);
  const uint64_t first = blocks.write_and_fence(0);
  EXPECT_FALSE(blocks.knows(1, first));
  blocks.atomic(0);
  EXPECT_FALSE(blocks.knows(1, first)) << "its atomic came before";
  blocks.atomic(1);
  EXPECT_TRUE(blocks.knows(1, first));
  const uint64_t second = blocks.write_and_fence(0);
  blocks.atomic(0);
  EXPECT_FALSE(blocks.knows(1, second));
  blocks.atomic(1);
  EXPECT_TRUE(blocks.knows(1, second));
  const uint64_t unfenced = blocks.write(0);
  blocks.atomic(0);
  blocks.atomic(1);
  EXPECT_FALSE(blocks.knows(1, unfenced));
  EXPECT_FALSE(blocks.knows(2, first)) << "it ran none";
}

TEST(BlockClock, WhatIsKnownIsPassedOnThroughSeveralHands) {
  Blocks blocks;
  const uint64_t first = blocks.write_and_fence(0);
  blocks.atomic(0);
  blocks.atomic(1);
  blocks.fence(1);
  blocks.atomic(1);
  blocks.atomic(2);
  EXPECT_TRUE(blocks.knows(2, first));
}

TEST(BlockClock, AFenceOfTheBlockReachesNoOtherBlock) {
  Blocks blocks;
  const uint64_t first = blocks.write(0);
  blocks.fence(0, Reach::block);
  blocks.atomic(0);
  blocks.atomic(1);
  EXPECT_FALSE(blocks.knows(1, first));
  blocks.fence(0);
  blocks.atomic(0);
  blocks.atomic(1);
  EXPECT_TRUE(blocks.knows(1, first));
}

TEST(BlockClock, SyncwarpOrdersTheLanesOfItsMask) {
  Blocks blocks;
  BlockClock& block = blocks[0];
  const uint64_t by_lane_20 = block.now() | 20;
  EXPECT_FALSE(blocks.knows(0, by_lane_20));
  block.sync_warp(0, 0xffff, ~0u);
  EXPECT_FALSE(blocks.knows(0, by_lane_20)) << "the mask names other lanes";
  block.sync_warp(0, ~0u, ~0u);
  EXPECT_TRUE(blocks.knows(0, by_lane_20));
}

TEST(BlockClock, WhatAGlanceDependsOnChangesItsNumber) {  // a glance is kept for as long as that stays
  Blocks blocks;
  BlockClock& block = blocks[0];
  const auto changes = [&](auto&& act) {
    const uint64_t before = block.changes();
    act();
    return block.changes() != before;
  };
  EXPECT_FALSE(changes([&] { block.now(); }));
  EXPECT_TRUE(changes([&] { block.advance(); }));
  EXPECT_TRUE(changes([&] { block.barrier(); })) << "also without an access";
  EXPECT_TRUE(changes([&] { block.sync_warp(0, 0xff, ~0u); }));
  EXPECT_TRUE(changes([&] { block.sync_warp(0, ~0u, ~0u); }));
  EXPECT_TRUE(changes([&] { block.all_know(0, 5); }));
  EXPECT_TRUE(changes([&] { block.use_views(nullptr); }));
  blocks.write_and_fence(1);
  blocks.atomic(1);
  EXPECT_TRUE(changes([&] { blocks.atomic(0); })) << "it has acquired something";
}

}  // namespace
}  // namespace emulator
