// SPDX-License-Identifier: Apache-2.0
#include "core/random.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(Generator, TakesCounters) {
  Generator g{5, 0};
  EXPECT_EQ(g.take(3), 0u);
  EXPECT_EQ(g.take(1), 3u);
  EXPECT_EQ(g.offset, 4u);
}

TEST(Generator, SeedReachesEveryDeviceAndItsState) {
  manual_seed(42);
  EXPECT_EQ(generator({}).seed, 42u);
  EXPECT_EQ(generator({DeviceKind::simt, 0}).seed, 42u);
  EXPECT_EQ(generator({DeviceKind::cuda, 3}).seed, 42u);
  EXPECT_EQ(random_state({}).to_vector<int64_t>(), (std::vector<int64_t>{42, 0}));
  generator({}).take(9);
  manual_seed(43);
  EXPECT_EQ(generator({}).offset, 0u);
  EXPECT_EQ(random_state({}).to_vector<int64_t>(), (std::vector<int64_t>{43, 0}));
}

}  // namespace
}  // namespace weft
