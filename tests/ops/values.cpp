// SPDX-License-Identifier: Apache-2.0
// Ops' values, in numbers that a reader can check: the derived tests compare a device with the CPU, and a gradient
// with slopes of the same forward. A forward that is another function everywhere would pass them.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <limits>

#include "core/ops/binary.h"
#include "core/ops/compare.h"
#include "core/ops/concat.h"
#include "core/ops/einsum.h"
#include "core/ops/gather.h"
#include "core/ops/layers/conv2d.h"
#include "core/ops/layers/conv3d.h"
#include "core/ops/layers/conv_transpose2d.h"
#include "core/ops/layers/embedding_bag.h"
#include "core/ops/layers/layer_norm.h"
#include "core/ops/layers/losses.h"
#include "core/ops/layers/pool2d.h"
#include "core/ops/layers/resize2d.h"
#include "core/ops/layers/softmax.h"
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

/// 0 1 2 … in [2, 3, 2].
Tensor counted() { return Tensor::arange(12, DType::f64).reshape({2, 3, 2}); }

TEST(Values, Arithmetic) {
  const Tensor a = given({6, -4}), b = given({3, 8});
  expect(sub(a, b), {3, -12});
  expect(sub(a, 1), {5, -5});
  expect(sub(1, a), {-5, 5});
  expect(add(a, b, 0.5), {7.5, 0});
  expect(mul(a, b), {18, -32});
  expect(div(a, b), {2, -0.5});
  expect(div(a, 4), {1.5, -1});
  expect(div(12, a), {2, -3});
  expect(affine(a, -1.5, 0.25), {-8.75, 6.25});
  expect(clamp(given({-3, 0.5, 7}), -1, 2), {-1, 0.5, 2});
  expect(sign(given({-3, 0, 7})), {-1, 0, 1});
}

TEST(Values, Comparisons) {
  const Tensor a = given({1, 2, 3}), b = given({2, 2, 2});
  expect(eq(a, b), {0, 1, 0});
  expect(ne(a, b), {1, 0, 1});
  expect(lt(a, b), {1, 0, 0});
  expect(le(a, b), {1, 1, 0});
  expect(gt(a, b), {0, 0, 1});
  expect(ge(a, b), {0, 1, 1});
  expect(gt(a, 1.5), {0, 1, 1});
  expect(lt(a, 1.5), {1, 0, 0});
  expect(where(gt(a, 1.5), a, b), {2, 2, 3});
}

TEST(Values, Reductions) {
  const Tensor x = given({3, -4, 0, 12, 5, -1}, {2, 3});
  expect(sum(x, {0}), {15, 1, -1});
  expect(sum(x, {1}), {-1, 16});
  expect(mean(x), {2.5});
  expect(mean(x, {0}), {7.5, 0.5, -0.5});
  expect(norm(x.slice(1, 0, 2), {1}), {5, 13});
  expect(max(x, {1}), {3, 12});
  expect(min(x, {0}), {3, -4, -1});
  expect(argmax(x, 0), {1, 1, 0});
  expect(argmax(x, 1), {0, 0});
  EXPECT_EQ(argmax(x, 0, true).sizes(), (Shape{1, 3}));
}

TEST(Values, Views) {
  const Tensor x = counted();
  EXPECT_EQ(x.flatten(0, 1).sizes(), (Shape{6, 2}));
  EXPECT_EQ(x.flatten(1).sizes(), (Shape{2, 6}));
  EXPECT_EQ(x.unsqueeze(1).sizes(), (Shape{2, 1, 3, 2}));
  expect(x.select(0, 1).select(1, -1), {7, 9, 11});
  expect(x.slice(1, -2, 2).select(0, 0), {2, 3, 4, 5});
  expect(x.slice(1, 0, 2, 2).select(0, 1), {6, 7, 10, 11});
  expect(x.permute({2, 0, 1}), {0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11});
  expect(given({1, 2}).unsqueeze(1).expand({2, 3}), {1, 1, 1, 2, 2, 2});
}

TEST(Values, Joining) {
  const Tensor a = given({1, 2, 3, 4}, {2, 2}), b = given({5, 6, 7, 8}, {2, 2});
  expect(concat({a, b}, 0), {1, 2, 3, 4, 5, 6, 7, 8});
  expect(concat({a, b}, 1), {1, 2, 5, 6, 3, 4, 7, 8});
  expect(stack({a, b}, 0), {1, 2, 3, 4, 5, 6, 7, 8});
  expect(stack({a, b}, 1), {1, 2, 5, 6, 3, 4, 7, 8});
  expect(stack({a, b}, -1), {1, 5, 2, 6, 3, 7, 4, 8});
  expect(pad(a, 1, 1, 2), {0, 1, 2, 0, 0, 0, 3, 4, 0, 0});
  expect(index_select(a, 1, labels({1, 1, 0})), {2, 2, 1, 4, 4, 3});
  expect(gather(a, 0, Tensor::from(std::vector<int64_t>{1, 0}, {1, 2})), {3, 2});
}

TEST(Values, Softmax) {
  const double e = std::exp(1), total = 1 + e;
  const Tensor x = given({0, 5, 1, 5}, {2, 2});
  expect(softmax(x, 0), {1 / total, 0.5, e / total, 0.5});
  expect(softmax(given({0, 1})), {1 / total, e / total});
  expect(log_softmax(x, 0), {-std::log(total), -std::log(2), 1 - std::log(total), -std::log(2)});
}

TEST(Values, Losses) {
  const double two = std::log(2), four = std::log(4);  // rows of equal numbers: log of the number of classes
  const Tensor x = Tensor::zeros({3, 4}, DType::f64), t = labels({0, -100, 3});
  expect(cross_entropy(x, t), {four});
  expect(cross_entropy(x, t, {.reduction = Reduction::sum}), {2 * four});
  expect(cross_entropy(x, t, {.reduction = Reduction::none}), {four, 0, four});
  // Logits 0 and log 3: probabilities 1/4 and 3/4; the target 0.9 and 0.1.
  expect(cross_entropy(given({0, std::log(3)}, {1, 2}), labels({0}), {.label_smoothing = 0.2}),
         {four * 0.9 + std::log(4.0 / 3) * 0.1});
  const Tensor picked = given({-two, -1, -3, -two, -5, -7}, {3, 2});
  expect(nll_loss(picked, labels({0, 1, 0})), {(2 * two + 5) / 3});
  expect(nll_loss(picked, labels({0, 1, -100})), {two});
  expect(nll_loss(picked, labels({0, 1, -100}), {.reduction = Reduction::sum}), {2 * two});
  expect(nll_loss(picked, labels({1, 0, -100}), {.reduction = Reduction::none}), {1, 3, 0});
  const Tensor a = given({1, 2}), b = given({3, -1});
  expect(mse_loss(a, b), {6.5});
  expect(mse_loss(a, b, Reduction::sum), {13});
  expect(mse_loss(a, b, Reduction::none), {4, 9});
}

TEST(Values, Pools) {
  const Tensor x = Tensor::arange(16, DType::f64).reshape({1, 4, 4, 1});
  expect(max_pool2d(x), {5, 7, 13, 15});  // the stride is the kernel unless it is given
  expect(avg_pool2d(x), {2.5, 4.5, 10.5, 12.5});
  expect(avg_pool2d(x, {.kernel = {3, 3}, .stride = {4, 4}, .padding = {1, 1}}), {10.0 / 9});
  expect(avg_pool2d(x, {.kernel = {3, 3}, .stride = {4, 4}, .padding = {1, 1}, .count_include_pad = false}), {2.5});
  expect(adaptive_avg_pool2d(x), {7.5});
  const Tensor five = given({1, 2, 3, 4, 5}, {1, 5, 1, 1}), six = given({1, 2, 3, 4, 5, 6}, {1, 6, 1, 1});
  const Pool2dOptions two{.kernel = {2, 1}, .ceil_mode = true};
  expect(max_pool2d(five, two), {2, 4, 5});
  expect(avg_pool2d(five, two), {1.5, 3.5, 5});
  const Pool2dOptions three{.kernel = {3, 1}, .padding = {1, 0}, .ceil_mode = true};
  expect(avg_pool2d(five, three), {1, 4});    // a third window would begin in the padding on the right
  expect(avg_pool2d(six, three), {1, 4, 3});  // its divisor counts the padding, not what lies beyond
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

TEST(Values, MoreLosses) {
  const double two = std::log(2), four = std::log(4);
  const Tensor x = given({0, std::log(3)}), t = given({0.25, 1});
  expect(bce_with_logits(x, t, {.reduction = Reduction::none}), {two, std::log(4.0 / 3)});
  // log sigmoid(log 3) = log 3/4 counts five times.
  expect(bce_with_logits(x, t, {.positive_weight = given({2, 5}), .reduction = Reduction::none}),
         {1.25 * two, 5 * std::log(4.0 / 3)});
  expect(bce_with_logits(given({1e4, -1e4}), given({0, 1}), {.reduction = Reduction::sum}), {2e4});
  const std::vector<float> sure{20, 10, -10, -20};
  const Numbers small =
      bce_with_logits(Tensor::from(sure), Tensor::from<float>({1, 1, 0, 0}), {.reduction = Reduction::none})
          .to_vector<double>();
  for (size_t i = 0; i < sure.size(); ++i)
    EXPECT_NEAR(small[i] / std::log1p(std::exp(-std::abs(sure[i]))), 1, 1e-6) << sure[i];
  const Tensor a = given({1, 2, 5}), b = given({3, -1, 4.5});
  expect(l1_loss(a, b), {5.5 / 3});
  expect(smooth_l1_loss(a, b, 2, Reduction::none), {1, 2, 0.0625});
  expect(kl_div(given({-two, -two}), given({1, 0}), Reduction::none), {two, 0});
  expect(kl_div(given({-four, -four}), given({0.5, 0.5}), Reduction::sum), {two});
}

TEST(Values, Activations) {
  expect(silu(given({0, std::log(3)})), {0, 0.75 * std::log(3)});
  expect(softplus(given({0, -1000, 1000})), {std::log(2), 0, 1000});
  expect(mish(given({0, 0.5})), {0, 0.5 * std::tanh(std::log(1 + std::exp(0.5)))});
  expect(elu(given({2, -std::log(2)}), 3), {2, -1.5});
  expect(log1p(given({0, 1e-30})), {0, 1e-30});
  expect(expm1(given({0, std::log(3)})), {0, 2});
  expect(erf(given({0, 1})), {0, 0.842700792949714869});
  const Tensor x = given({-1.5, -0.5, 0.5, 1.5, 2.5, 2.75});
  expect(floor(x), {-2, -1, 0, 1, 2, 2});
  expect(ceil(x), {-1, 0, 1, 2, 3, 3});
  expect(round(x), {-2, 0, 0, 2, 2, 3});  // halves to the even neighbour
}

TEST(Values, NoNumbers) {
  const Tensor x = given({NAN, INFINITY, -INFINITY, 3});
  expect(isnan(x), {1, 0, 0, 0});
  expect(isfinite(x), {0, 0, 0, 1});
  expect(isfinite(labels({3})), {1});
  expect(isnan(labels({3})), {0});
}

TEST(Values, MoreReductions) {
  const Tensor x = given({1, 2, 4, 8}, {2, 2});
  expect(argmin(given({3, 1, 1, 0, NAN, -5}, {2, 3}), 1), {1, 1});
  expect(logsumexp(given({1e4, 1e4})), {1e4 + std::log(2)});
  EXPECT_EQ(logsumexp(given({-INFINITY, -INFINITY})).item(), -INFINITY);
  EXPECT_EQ(logsumexp(given({INFINITY, 1})).item(), INFINITY);
  expect(logsumexp(Tensor::zeros({2, 3}, DType::f64), {0}), {std::log(2), std::log(2), std::log(2)});
  expect(var(x), {(2.75 * 2.75 + 1.75 * 1.75 + 0.25 * 0.25 + 4.25 * 4.25) / 3});
  expect(var(x, {.dims = {1}, .correction = 0}), {0.25, 4});
  EXPECT_EQ(var(x, {.correction = 5}).item(), INFINITY);
  expect(weft::std(x, {.dims = {1}, .correction = 0}), {0.5, 2});
  expect(var(given({1e8, 1e8 + 2}), {.correction = 0}), {1});
  // Where f32 rounds the mean to a whole number; and 236.3 as bf16 has it, which steps in bf16 miss by 3.
  EXPECT_NEAR(var(Tensor::from<float>({8388608, 8388609, 8388609})).item(), 1 / 3.0, 1e-6);
  EXPECT_EQ(var(Tensor::from<float>({2, 30, 5}).to(DType::bf16)).item(), 236);
}

TEST(Values, Rearranged) {
  const Tensor x = given({0, 1, 2, 3, 4, 5}, {2, 3});
  expect(flip(x, {1}), {2, 1, 0, 5, 4, 3});
  expect(roll(x, 1, 1), {2, 0, 1, 5, 3, 4});
  expect(roll(x, -4, 1), {1, 2, 0, 4, 5, 3});
  expect(repeat(x, {1, 2}), {0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5});
  const auto parts = split(x, {1, 2}, 1);
  expect(parts[0], {0, 3}), expect(parts[1], {1, 2, 4, 5});
  EXPECT_EQ(split(x, 2, 1).size(), 2u);
  EXPECT_EQ(chunk(given({0, 1, 2, 3, 4}), 4).size(), 3u);  // parts of 2, 2 and 1, as PyTorch
  expect(chunk(given({0, 1, 2, 3, 4}), 4).back(), {4});
  EXPECT_EQ(chunk(given({0, 1}), std::numeric_limits<int64_t>::max()).size(), 2u);
  expect(tril(given({1, 2, 3, 4, 5, 6}, {2, 3})), {1, 0, 0, 4, 5, 0});
  expect(triu(given({1, 2, 3, 4, 5, 6}, {2, 3}), 1), {0, 2, 3, 0, 0, 6});
  expect(one_hot(labels({2, 0}), 3), {0, 0, 1, 1, 0, 0});
  expect(sum(one_hot(labels({5}).to(DType::u8), 300)), {1});
  expect(masked_fill(x, gt(x, 3.0), -1), {0, 1, 2, 3, -1, -1});
  expect(where(gt(x, 3.0), x, 7.0), {7, 7, 7, 7, 4, 5});
  expect(scatter_add(given({1, 1, 1}), 0, labels({2, 0, 2}), given({5, 6, 7})), {7, 1, 13});
  expect(scatter(given({1, 1, 1}), 0, labels({2, 0, 2}), given({5, 6, 7})), {6, 1, 7});
  expect(scatter(x, 0, labels({1, 0, 1}).reshape({1, 3}), 9), {0, 9, 2, 9, 4, 9});
  expect(scatter(x, -1, labels({2, 1}).reshape({2, 1}), given({8, 9}, {2, 1})), {0, 1, 8, 3, 9, 5});
  expect(scatter(labels({1, 2}), 0, labels({1}), 7), {1, 7});
}

TEST(Values, ManyBags) {
  constexpr int64_t kBags = 500'000;
  const Tensor numbers = Tensor::arange(kBags);
  const auto begin = std::chrono::steady_clock::now();
  const Tensor y = embedding_bag(given({1, 2}, {2, 1}), Tensor::zeros({kBags}, DType::i64), numbers);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20)) << "time grows with their number alone";
  expect(sum(y), {kBags});
}

TEST(Values, Einsum) {
  const Tensor a = given({1, 2, 3, 4}, {2, 2}), b = given({5, 6});
  expect(einsum("ij,j->i", {a, b}), {17, 39});
  expect(einsum("ij,j", {a, b}), {17, 39});
  expect(einsum("ij->ji", {a}), {1, 3, 2, 4});
  expect(einsum("ij->", {a}), {10});
  expect(einsum("i,j->ji", {b, b}), {25, 30, 30, 36});
  expect(einsum("ij,ij->ij", {a, a}), {1, 4, 9, 16});
  expect(einsum("ij,kl->j", {a, a}), {40, 60});
}

TEST(Values, ConvTranspose) {  // each input position adds its number times the kernel
  const Tensor x = given({1, 2}, {1, 1, 2, 1}), w = given({1, 10, 100}, {1, 1, 3, 1});
  expect(conv_transpose2d(x, w, given({0.5})), {1.5, 12.5, 120.5, 200.5});
  expect(conv_transpose2d(x, w, {}, {.stride = {1, 2}, .padding = {0, 1}, .output_padding = {0, 1}}),
         {10, 102, 20, 200});
}

TEST(Values, GroupNorm) {
  const Tensor x = given({1, 10, 3, 30}, {1, 2, 2});  // two positions, two channels
  expect(group_norm(x, 2, given({1, 2}), given({0, 1}), 0), {-1, -1, 1, 3});
  expect(group_norm(given({0, 2}, {1, 1, 2}), 1, {}, {}, 0), {-1, 1});
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
