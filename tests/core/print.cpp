// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "core/tensor.h"

namespace weft {
namespace {

TEST(Print, HeadLine) {
  EXPECT_EQ(str(Tensor::zeros({8, 64})), "f32[8,64] on cpu");
  EXPECT_EQ(str(Tensor::zeros({}, DType::bf16)), "bf16[] on cpu");
  EXPECT_EQ(str(Tensor()), "none");
}

TEST(Print, Values) {
  EXPECT_EQ(to_string(Tensor()), "none");
  EXPECT_EQ(to_string(Tensor::full({}, 2.5)), "f32[] on cpu 2.5");
  EXPECT_EQ(to_string(Tensor::from<int64_t>({1, -20, 3, 4}, {2, 2})), "i64[2,2] on cpu [[  1, -20],\n [  3,   4]]");
  EXPECT_EQ(to_string(Tensor::from<float>({1.0f / 3, 1e9f})), "f32[2] on cpu [0.3333,  1e+09]");
  EXPECT_EQ(to_string(Tensor::zeros({0, 3})), "f32[0,3] on cpu []");
  EXPECT_EQ(to_string(Tensor::from<int64_t>({int64_t{9007199254740993}})), "i64[1] on cpu [9007199254740993]");
  EXPECT_EQ(to_string(Tensor::from<int64_t>({1, 0}).to(DType::boolean)), "bool[2] on cpu [ true, false]");
}

TEST(Print, AStreamGetsValuesAndAnErrorTheHeadLine) {
  std::ostringstream out;
  out << Tensor::from<int64_t>({1, 2}) << ' ' << Tensor() << ' ' << Tensor::wrap(nullptr, {2}, DType::f32, {});
  EXPECT_EQ(out.str(), "i64[2] on cpu [1, 2] none f32[2] on cpu without memory now");
  EXPECT_EQ(str("x ", Tensor::from<int64_t>({1, 2}), " y"), "x i64[2] on cpu y");
}

TEST(Print, LargeTensorsAreShortened) {
  EXPECT_EQ(to_string(Tensor::arange(1000), 2), "i64[1000] on cpu [  0,   1, …, 998, 999]");
  const std::string grid = to_string(Tensor::arange(10'000).reshape({100, 100}), 1);
  EXPECT_EQ(grid, "i64[100,100] on cpu [[   0, …,   99],\n …,\n [9900, …, 9999]]");
}

}  // namespace
}  // namespace weft
