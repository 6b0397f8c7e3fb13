// SPDX-License-Identifier: Apache-2.0
#include "core/shape.h"

#include <gmock/gmock.h>

#include "core/promotion.h"

namespace weft {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Shape, Broadcasting) {
  EXPECT_EQ(broadcast_shapes("add", {3, 1}, {1, 4}), (Shape{3, 4}));
  EXPECT_EQ(broadcast_shapes("add", {5}, {2, 3, 1}), (Shape{2, 3, 5}));
  EXPECT_EQ(broadcast_shapes("add", {}, {2}), (Shape{2}));
  EXPECT_EQ(broadcast_shapes("add", {0}, {1}), (Shape{0}));
  EXPECT_THAT(
      [] {
        broadcast_shapes("add", {2, 3}, {4, 3});
      },
      ThrowsMessage<Error>(HasSubstr("add: cannot broadcast [2,3] with [4,3]: sizes 2 and 4 differ in dimension 0")));
  EXPECT_THROW(broadcast_shapes("add", {0}, {2}), Error);
}

TEST(Shape, CountsUpTo64Bits) {
  constexpr int64_t k = int64_t{1} << 31;
  EXPECT_EQ((Shape{k, k}).numel(), int64_t{1} << 62);
  EXPECT_THAT(
      (std::vector{Shape{}.numel(), Shape{3, 1, 4}.numel(), Shape{2 * k, k, k, 0}.numel(), Shape{0, k, k, k}.numel()}),
      testing::ElementsAre(1, 12, 0, 0));
  for (const Shape& shape : {Shape{k, k, 2}, Shape{k, 2 * k}, Shape{2 * k, 2 * k}, Shape{2 * k, 2 * k, 3}})
    EXPECT_THAT([&] { shape.numel(); }, ThrowsMessage<Error>(HasSubstr("has more elements than 64 bits count")))
        << shape;
}

TEST(Shape, Dimensions) {
  EXPECT_EQ(wrap_dim("sum", -1, 3), 2);
  EXPECT_EQ(wrap_dim("sum", 0, 3), 0);
  EXPECT_THAT([] { wrap_dim("sum", 3, 3); },
              ThrowsMessage<Error>(HasSubstr("sum: dimension 3 is out of range for 3 dimensions")));
  EXPECT_THROW(wrap_dim("sum", -4, 3), Error);
  EXPECT_THAT([] { Shape(std::vector<int64_t>(9, 1)); },
              ThrowsMessage<Error>(HasSubstr("shape: at most 8 dimensions, got 9")));
}

TEST(Promotion, FloatingWinsAndWiderWins) {
  EXPECT_EQ(promote(DType::f32, DType::bf16), DType::f32);
  EXPECT_EQ(promote(DType::bf16, DType::f16), DType::f32);
  EXPECT_EQ(promote(DType::f64, DType::f32), DType::f64);
  EXPECT_EQ(promote(DType::bf16, DType::i64), DType::bf16);
  EXPECT_EQ(promote(DType::i32, DType::i64), DType::i64);
  EXPECT_EQ(promote(DType::boolean, DType::u8), DType::u8);
  EXPECT_EQ(promote(DType::bf16, 2.5), DType::bf16);
  EXPECT_EQ(promote(DType::i64, 2.5), DType::f32);
  EXPECT_EQ(promote(DType::i64, 2), DType::i64);
  EXPECT_EQ(promote(DType::i32, 2), DType::i32);
  EXPECT_EQ(promote(DType::u8, 2), DType::i64);
}

}  // namespace
}  // namespace weft
