// SPDX-License-Identifier: Apache-2.0
#include "emulator/machine/stream_order.h"

#include <gtest/gtest.h>

namespace emulator {
namespace {

TEST(StreamOrder, IsReadFromText) {
  EXPECT_EQ(parse_streams("inorder")->order, StreamOrder::inorder);
  EXPECT_EQ(parse_streams("lazy")->order, StreamOrder::lazy);
  EXPECT_EQ(parse_streams("random")->order, StreamOrder::random);
  EXPECT_EQ(parse_streams("starve:12")->order, StreamOrder::starve);
  EXPECT_EQ(parse_streams("starve:12")->starved, 12);
  EXPECT_EQ(parse_streams("queues:8")->order, StreamOrder::queues);
  EXPECT_EQ(parse_streams("queues:8")->queues, 8);
  for (const char* text :
       {"", "Lazy", "starve", "starve:", "starve:-1", "starve:2x", "random:3", "queues:0", "queues:"})
    EXPECT_FALSE(parse_streams(text).has_value()) << text;
}

}  // namespace
}  // namespace emulator
