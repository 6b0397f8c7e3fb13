// SPDX-License-Identifier: Apache-2.0
#include "core/random.h"

#include <gtest/gtest.h>

#include <thread>

namespace weft {
namespace {

TEST(Generator, TakesCounters) {
  RandomGenerator g{5, 0};
  EXPECT_EQ(g.take(3), 0u);
  EXPECT_EQ(g.take(1), 3u);
  EXPECT_EQ(g.offset, 4u);
}

TEST(Generator, SeedReachesEveryDeviceAndItsState) {
  manual_seed(42);
  EXPECT_EQ(generator({}).seed, 42u);
  EXPECT_EQ(generator({DeviceKind::cuda, 3}).seed, 42u);
  EXPECT_EQ(random_state({}).to_vector<int64_t>(), (std::vector<int64_t>{42, 0}));
  generator({}).take(9);
  manual_seed(43);
  EXPECT_EQ(generator({}).offset, 0u);
  EXPECT_EQ(random_state({}).to_vector<int64_t>(), (std::vector<int64_t>{43, 0}));
}

TEST(Generator, AThreadMayHaveItsOwn) {
  manual_seed(42);
  generator({}).take(7);
  std::thread([] {
    const ThreadGenerators own;
    EXPECT_EQ(generator({}).seed, 42u);
    EXPECT_EQ(generator({}).take(2), 7u) << "begins where the process's stands";
    manual_seed(5);
    EXPECT_EQ(random_state({}).to_vector<int64_t>(), (std::vector<int64_t>{5, 0}));
    {
      const ThreadGenerators inner;
      EXPECT_EQ(generator({}).seed, 5u) << "begins where the thread's stands";
      manual_seed(6);
      EXPECT_EQ(generator({DeviceKind::cuda, 3}).seed, 6u) << "of every device, also one that was not used yet";
    }
    EXPECT_EQ(generator({}).seed, 5u);
  }).join();
  EXPECT_EQ(generator({}).seed, 42u);
  EXPECT_EQ(generator({}).take(1), 7u);
}

}  // namespace
}  // namespace weft
