// SPDX-License-Identifier: Apache-2.0
#include "emulator/source/clock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

// The order that the checked build derives, queried directly, so in every build.

namespace weft::tests {
namespace {

using emulator::source::BlockClock;
using emulator::source::LaunchClock;

constexpr uintptr_t kCounter = 0x1000, kData = 0x2000;
constexpr int kThread = 3;  // runs the atomics of each block

/// Three blocks of a launch, each on an OS thread of its own as far as the clock knows.
struct Blocks {
  LaunchClock launch{3};
  BlockClock blocks[3];

  Blocks() {
    for (uint64_t i = 0; i < 3; ++i) blocks[i].begin(launch, i, 32);
  }
  BlockClock& operator[](int i) { return blocks[i]; }
  /// Block i writes data and fences; the stamp of the write.
  uint64_t write(int i) {
    const uint64_t stamp = blocks[i].now(kThread);
    blocks[i].global_write(stamp);
    blocks[i].fence(kThread, false);
    return stamp;
  }
  void come_to_atomic(int i) { blocks[i].atomic(kCounter, false, kThread); }
  void atomic(int i) {
    come_to_atomic(i);
    blocks[i].atomic_begins(kCounter, kThread);
    blocks[i].atomic_ends();
  }
  bool knows(int i, uint64_t stamp) { return blocks[i].ordered<false>(stamp, kThread, kData); }
};

TEST(BlockClock, ALaterAtomicKnowsWhatAFenceAndAnEarlierOnePublished) {
  Blocks blocks;
  blocks.atomic(1);
  const uint64_t first = blocks.write(0);
  EXPECT_FALSE(blocks.knows(1, first));
  blocks.atomic(0);
  EXPECT_FALSE(blocks.knows(1, first)) << "its atomic came before";
  blocks.atomic(1);
  EXPECT_TRUE(blocks.knows(1, first));
  const uint64_t second = blocks.write(0);
  blocks.atomic(0);
  EXPECT_FALSE(blocks.knows(1, second));
  blocks.atomic(1);
  EXPECT_TRUE(blocks.knows(1, second));
  const uint64_t unfenced = blocks[0].now(kThread);
  blocks.atomic(0);
  blocks.atomic(1);
  EXPECT_FALSE(blocks.knows(1, unfenced));
  EXPECT_FALSE(blocks.knows(2, first)) << "it ran none";
}

TEST(BlockClock, WhoComesFirstAndRunsItsAtomicSecondIsTheLater) {
  Blocks blocks;
  blocks.come_to_atomic(1);
  blocks[1].atomic_begins(kCounter, kThread);  // nothing is released yet, so nothing waits
  const uint64_t stamp = blocks.write(0);
  blocks.atomic(0);
  EXPECT_FALSE(blocks.knows(1, stamp));
  blocks[1].atomic_ends();
  EXPECT_TRUE(blocks.knows(1, stamp));
}

TEST(BlockClock, WhatIsGivenAfterComingToAnAtomicAndBeforeItIsKnown) {
  Blocks blocks;
  const uint64_t first = blocks.write(0);
  blocks.atomic(0);
  blocks.come_to_atomic(1);
  const uint64_t second = blocks.write(2);
  blocks.atomic(2);
  EXPECT_FALSE(blocks.knows(1, second));
  blocks[1].atomic_begins(kCounter, kThread);
  blocks[1].atomic_ends();
  EXPECT_TRUE(blocks.knows(1, first));
  EXPECT_TRUE(blocks.knows(1, second));
}

TEST(BlockClock, AtomicsThatExchangeHappenOneByOne) {
  Blocks blocks;
  blocks.write(0);
  blocks.atomic(0);
  const uint64_t stamp = blocks.write(1);
  blocks.come_to_atomic(1);
  blocks.come_to_atomic(2);
  blocks[1].atomic_begins(kCounter, kThread);
  std::atomic<bool> begun = false;
  std::thread other([&] {
    blocks[2].atomic_begins(kCounter, kThread);
    begun = true;
    blocks[2].atomic_ends();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_FALSE(begun) << "the other's atomic is under way";
  blocks[1].atomic_ends();
  other.join();
  EXPECT_TRUE(blocks.knows(2, stamp));
}

}  // namespace
}  // namespace weft::tests
