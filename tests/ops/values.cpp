// SPDX-License-Identifier: Apache-2.0
// Ops' values at edges that no row of op_cases() has, in numbers that a reader can check.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <limits>

#include "core/ops/binary.h"
#include "core/ops/compare.h"
#include "core/ops/gather.h"
#include "core/ops/layers/conv2d.h"
#include "core/ops/layers/conv3d.h"
#include "core/ops/layers/conv_transpose2d.h"
#include "core/ops/layers/embedding_bag.h"
#include "core/ops/layers/losses.h"
#include "core/ops/layers/pool2d.h"
#include "core/ops/layers/resize2d.h"
#include "core/ops/random.h"
#include "core/ops/rearrange.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "core/random.h"

namespace weft {
namespace {

using Numbers = std::vector<double>;

Tensor given(const Numbers& values) { return Tensor::from(values); }
Tensor given(const Numbers& values, const Shape& sizes) { return Tensor::from(values, sizes); }
Tensor labels(const std::vector<int64_t>& values) { return Tensor::from(values); }

void expect(const Tensor& y, const Numbers& want) {
  const Numbers got = y.to_vector<double>();
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-12) << "element " << i;
}

TEST(Values, OneNumberMeansAllDimensions) {
  const Tensor image = normal({1, 8, 8, 3}), volume = normal({1, 6, 6, 6, 2});
  const Tensor w = normal({4, 3, 3, 3}), cube = normal({4, 3, 3, 3, 2}), up = normal({3, 3, 3, 4});
  const auto expect_same = [](const Tensor& a, const Tensor& b) {
    EXPECT_EQ(a.sizes(), b.sizes());
    EXPECT_EQ(a.to_vector<float>(), b.to_vector<float>());
  };
  expect_same(conv2d(image, w, {}, {.stride = 2, .padding = 1, .dilation = 2}),
              conv2d(image, w, {}, {.stride = {2, 2}, .padding = {1, 1}, .dilation = {2, 2}}));
  expect_same(conv2d(image, w, {}, {.padding = {2}}), conv2d(image, w, {}, {.padding = {2, 2}}));
  expect_same(conv3d(volume, cube, {}, {.stride = 2, .padding = 1, .dilation = 2}),
              conv3d(volume, cube, {}, {.stride = {2, 2, 2}, .padding = {1, 1, 1}, .dilation = {2, 2, 2}}));
  expect_same(conv_transpose2d(image, up, {}, {.stride = 2, .padding = 1, .output_padding = 1}),
              conv_transpose2d(image, up, {}, {.stride = {2, 2}, .padding = {1, 1}, .output_padding = {1, 1}}));
  expect_same(max_pool2d(image, {.kernel = 3, .stride = 1, .padding = 1}),
              max_pool2d(image, {.kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1}}));
  expect_same(avg_pool2d(image, {.kernel = {2, 2}, .stride = 1}), avg_pool2d(image, {.kernel = 2, .stride = {1, 1}}));
  expect_same(adaptive_avg_pool2d(image, 2), adaptive_avg_pool2d(image, {2, 2}));
  expect_same(resize2d(image, 5), resize2d(image, {5, 5}));
  EXPECT_EQ(conv2d(image, w, {}, {.padding = {1, 2}}).sizes(), (Shape{1, 8, 10, 4}));
}

// Only a number, or a number for each dimension, compiles.
static_assert(std::is_convertible_v<int, Size2d> && std::is_constructible_v<Size2d, int, int> &&
              std::is_convertible_v<int, Size3d> && std::is_constructible_v<Size3d, int, int, int>);
static_assert(!std::is_convertible_v<double, Size2d> && !std::is_convertible_v<bool, Size2d> &&
              !std::is_default_constructible_v<Size2d> && !std::is_constructible_v<Size2d, int, int, int> &&
              !std::is_default_constructible_v<Size3d> && !std::is_constructible_v<Size3d, int, int>);

TEST(Values, LossesOfLargeAndSmallNumbers) {
  expect(bce_with_logits(given({1e4, -1e4}), given({0, 1}), {.reduction = Reduction::sum}), {2e4});
  const std::vector<float> sure{20, 10, -10, -20};
  const Numbers small =
      bce_with_logits(Tensor::from(sure), Tensor::from<float>({1, 1, 0, 0}), {.reduction = Reduction::none})
          .to_vector<double>();
  for (size_t i = 0; i < sure.size(); ++i)
    EXPECT_NEAR(small[i] / std::log1p(std::exp(-std::abs(sure[i]))), 1, 1e-6) << sure[i];
  const double two = std::log(2);
  expect(kl_div(given({-two, -two}), given({1, 0}), Reduction::none), {two, 0});
}

TEST(Values, ActivationsAtTheirEnds) {
  expect(softplus(given({0, -1000, 1000})), {std::log(2), 0, 1000});
  expect(log1p(given({0, 1e-30})), {0, 1e-30});
  expect(round(given({-1.5, -0.5, 0.5, 1.5, 2.5, 2.75})), {-2, 0, 0, 2, 2, 3});  // halves to the even neighbour
}

TEST(Values, NoNumbers) {
  const Tensor x = given({NAN, INFINITY, -INFINITY, 3});
  expect(isnan(x), {1, 0, 0, 0});
  expect(isfinite(x), {0, 0, 0, 1});
  expect(isfinite(labels({3})), {1});
  expect(isnan(labels({3})), {0});
}

TEST(Values, ReductionsAtTheirEnds) {
  expect(argmin(given({3, 1, 1, 0, NAN, -5}, {2, 3}), 1), {1, 1});
  expect(logsumexp(given({1e4, 1e4})), {1e4 + std::log(2)});
  EXPECT_EQ(logsumexp(given({-INFINITY, -INFINITY})).item(), -INFINITY);
  EXPECT_EQ(logsumexp(given({INFINITY, 1})).item(), INFINITY);
  const Tensor nothing = Tensor::zeros({2, 0}, DType::f64).requires_grad_(), none = logsumexp(nothing, {1});
  EXPECT_EQ(none.to_vector<double>(), std::vector<double>(2, -INFINITY)) << "PyTorch's result";
  sum(none).backward();
  EXPECT_EQ(nothing.grad().sizes(), (Shape{2, 0}));
  EXPECT_EQ(logsumexp(nothing, {0}).sizes(), Shape{0});
  EXPECT_EQ(var(given({1, 2, 4, 8}), {.correction = 5}).item(), INFINITY);
  expect(var(given({1e8, 1e8 + 2}), {.correction = 0}), {1});
  // Where f32 rounds the mean to a whole number; and 236.3 as bf16 has it, which steps in bf16 miss by 3.
  EXPECT_NEAR(var(Tensor::from<float>({8388608, 8388609, 8388609})).item(), 1 / 3.0, 1e-6);
  EXPECT_EQ(var(Tensor::from<float>({2, 30, 5}).to(DType::bf16)).item(), 236);
}

TEST(Values, Rearranged) {
  expect(roll(given({0, 1, 2, 3, 4, 5}, {2, 3}), -4, 1), {1, 2, 0, 4, 5, 3});
  EXPECT_EQ(chunk(given({0, 1, 2, 3, 4}), 4).size(), 3u);  // parts of 2, 2 and 1, as PyTorch
  EXPECT_EQ(chunk(given({0, 1}), std::numeric_limits<int64_t>::max()).size(), 2u);
  expect(sum(one_hot(labels({5}).to(DType::u8), 300)), {1});
  expect(scatter(given({1, 1, 1}), 0, labels({2, 0, 2}), given({5, 6, 7})), {6, 1, 7});  // the last of several
}

TEST(Values, ManyBags) {
  constexpr int64_t kBags = 500'000;
  const Tensor numbers = Tensor::arange(kBags);
  const auto begin = std::chrono::steady_clock::now();
  const Tensor y = embedding_bag(given({1, 2}, {2, 1}), Tensor::zeros({kBags}, DType::i64), numbers);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20)) << "time grows with their number alone";
  expect(sum(y), {kBags});
}

TEST(Values, DrawnNumbers) {
  manual_seed(3);
  const Tensor x = randint({2000}, -2, 3);
  EXPECT_EQ(x.dtype(), DType::i64);
  std::vector<int> counts(5);
  for (const int64_t value : x.to_vector<int64_t>()) {
    ASSERT_TRUE(value >= -2 && value < 3) << value;
    ++counts[static_cast<size_t>(value + 2)];
  }
  for (const int count : counts) EXPECT_NEAR(count, 400, 90);  // five standard deviations
  const Tensor classes = multinomial(given({1, 0, 3, 0, 0, 2}, {2, 3}), 4000);
  EXPECT_EQ(classes.sizes(), (Shape{2, 4000}));
  int twos = 0;
  for (const int64_t c : classes.select(0, 0).to_vector<int64_t>()) {
    ASSERT_TRUE(c == 0 || c == 2) << c;
    twos += c == 2;
  }
  EXPECT_NEAR(twos, 3000, 140);
  for (const int64_t c : classes.select(0, 1).to_vector<int64_t>()) ASSERT_EQ(c, 2);
  // The draw of the second row's second class is 0.
  manual_seed(1);
  generator({}).offset = 10460476;
  EXPECT_EQ(multinomial(given({0, 1}, {2}), 2).to_vector<int64_t>(), (std::vector<int64_t>{1, 1}));
  // Without replacement: each class once; of weights 1, 3, 2 the second comes first as often as with it.
  const Tensor rows = given({1, 3, 2}).expand({4000, 3}), orders = multinomial(rows, 3, false);
  EXPECT_EQ(sum(orders, {1}).to_vector<int64_t>(), std::vector<int64_t>(4000, 3));
  EXPECT_EQ(max(orders, {1}).to_vector<int64_t>(), std::vector<int64_t>(4000, 2));
  EXPECT_NEAR(sum(eq(orders.select(1, 0), 1.0).to(DType::f64)).item(), 2000, 160);
  // The third is among the first two with probability 2/6 + 3/6 2/3 + 1/6 2/5.
  EXPECT_NEAR(sum(ne(orders.select(1, 2), 2.0).to(DType::f64)).item(), 4000 * 11 / 15.0, 160);
}

}  // namespace
}  // namespace weft
