// SPDX-License-Identifier: Apache-2.0
#include "nn/init.h"

#include <algorithm>
#include <cmath>

#include "core/random.h"
#include "nn/conv.h"
#include "nn/linear.h"
#include "nn/models/resnet.h"
#include "tests/support/error_text.h"

namespace weft::nn {
namespace {

struct Moments {
  double mean = 0, variance = 0, kurtosis = 0, largest = 0;
};

Moments moments(const Tensor& tensor) {
  const std::vector<double> values = tensor.to_vector<double>();
  const double n = static_cast<double>(values.size());
  Moments m;
  for (const double v : values) m.mean += v / n;
  double fourth = 0;
  for (const double v : values) {
    m.variance += (v - m.mean) * (v - m.mean) / n;
    fourth += std::pow(v - m.mean, 4) / n;
    m.largest = std::max(m.largest, std::abs(v));
  }
  m.kurtosis = fourth / (m.variance * m.variance);
  return m;
}

// The figures are over at least 50,000 draws: a relative deviation of the variance by 3% is beyond six sigma.
constexpr double kTolerance = 0.03;

TEST(Init, Fans) {
  const Fans linear = fans_of(Tensor::empty({7, 3}));
  EXPECT_EQ(linear.in, 3);
  EXPECT_EQ(linear.out, 7);
  const Fans conv = fans_of(Tensor::empty({16, 3, 5, 4}));  // OHWI
  EXPECT_EQ(conv.in, 3 * 5 * 4);
  EXPECT_EQ(conv.out, 16 * 3 * 5);
  EXPECT_EQ(error_text([] { fans_of(Tensor::empty({4})); }),
            "fans_of: expected a weight of at least 2 dimensions, got f32[4] on cpu");
}

TEST(Init, KaimingNormal) {
  const Tensor weight = Tensor::empty({64, 3, 3, 128});
  kaiming_normal_(weight);
  EXPECT_NEAR(moments(weight).variance * (9 * 128) / 2, 1, kTolerance);
  EXPECT_NEAR(moments(weight).kurtosis, 3, 0.2);
  kaiming_normal_(weight, {.slope = 1, .fan = Fan::out});
  EXPECT_NEAR(moments(weight).variance * (64 * 9), 1, kTolerance);
}

TEST(Init, Xavier) {
  const Tensor weight = Tensor::empty({300, 200});
  xavier_normal_(weight, 2);
  EXPECT_NEAR(moments(weight).variance * 500 / 8, 1, kTolerance);
  EXPECT_NEAR(moments(weight).kurtosis, 3, 0.2);
  xavier_uniform_(weight);
  EXPECT_NEAR(moments(weight).variance * 500 / 2, 1, kTolerance);
  EXPECT_LE(moments(weight).largest, std::sqrt(6.0 / 500));
}

TEST(Init, TruncatedNormal) {
  const Tensor x = Tensor::empty({60000});
  trunc_normal_(x, 0, 0.5, -0.5, 0.5);
  // Within one deviation: 1 - 2 phi(1) / erf(1 / sqrt(2)) of the variance.
  EXPECT_NEAR(moments(x).variance / (0.25 * 0.29112509), 1, kTolerance);
  EXPECT_LE(moments(x).largest, 0.5);
  for (const DType dtype : {DType::bf16, DType::f16}) {  // in neither are the bounds numbers
    const Tensor low = Tensor::zeros({5000}, dtype);
    trunc_normal_(low, 0, 0.02, -0.03, 0.041);
    const Tensor values = low.to(DType::f64);
    EXPECT_GE(values.min().item(), -0.03) << dtype;
    EXPECT_LE(values.max().item(), 0.041) << dtype;
    EXPECT_NEAR(values.std().item(), 0.0165, 0.0005) << dtype;
  }
  EXPECT_EQ(
      error_text([&] { trunc_normal_(x, 0, 1, 5, 6); }),
      "trunc_normal_: expected a positive std and bounds that keep 1% of the draws, got mean 0, std 1 and [5, 6]");
}

TEST(Init, Orthogonal) {
  for (const Shape& sizes : {Shape{8, 2, 2, 5}, Shape{30, 7}}) {
    const Tensor weight = Tensor::empty(sizes, DType::f64);
    orthogonal_(weight, 3);
    const Tensor matrix = weight.reshape({sizes[0], -1}), rows = sizes[0] <= matrix.size(1) ? matrix : matrix.t();
    const std::vector<double> products = rows.matmul(rows.t()).to_vector<double>();
    const auto n = static_cast<size_t>(rows.size(0));
    for (size_t i = 0; i < products.size(); ++i) EXPECT_NEAR(products[i], i / n == i % n ? 9 : 0, 1e-13);
  }
  EXPECT_EQ(error_text([] { orthogonal_(Tensor::empty({4})); }),
            "orthogonal_: expected a weight of at least 2 dimensions, got f32[4] on cpu");
}

TEST(Init, KaimingUniform) {
  const Tensor weight = Tensor::empty({300, 200});
  kaiming_uniform_(weight);
  EXPECT_NEAR(moments(weight).variance * 200 / 2, 1, kTolerance);
  EXPECT_NEAR(moments(weight).kurtosis, 1.8, 0.05);
}

// PyTorch's default: weight and bias uniform in ± 1 / sqrt(fan in).
TEST(Init, DefaultsOfLinearAndConv2d) {
  const Linear linear(256, 400);
  const double bound = 1 / std::sqrt(256.0);
  EXPECT_LE(moments(linear.weight).largest, bound);
  EXPECT_GT(moments(linear.weight).largest, 0.99 * bound);
  EXPECT_LE(moments(linear.bias).largest, bound);
  EXPECT_GT(moments(linear.bias).largest, 0.9 * bound);
  const Conv2d conv(64, 96, {3, 3}, {.groups = 2});
  const double conv_bound = 1 / std::sqrt(9.0 * 32);
  EXPECT_LE(moments(conv.weight).largest, conv_bound);
  EXPECT_GT(moments(conv.weight).largest, 0.99 * conv_bound);
}

TEST(Init, ResNetIsKaimingNormalFanOut) {
  const auto model = resnet18({.classes = 10, .zero_init_residual = true});
  const auto* block = dynamic_cast<BasicBlock*>(model->layer2.children[0].get());
  ASSERT_NE(block, nullptr);
  EXPECT_NEAR(moments(block->conv2.weight).variance * (128 * 9) / 2, 1, kTolerance);
  EXPECT_EQ(moments(block->bn1.weight).mean, 1);
  EXPECT_EQ(moments(block->bn2.weight).largest, 0);
}

TEST(Init, ASeedRepeatsTheWeights) {
  manual_seed(5);
  const Linear first(9, 4);
  const Linear other(9, 4);
  manual_seed(5);
  const Linear again(9, 4);
  EXPECT_EQ(first.weight.to_vector<float>(), again.weight.to_vector<float>());
  EXPECT_EQ(first.bias.to_vector<float>(), again.bias.to_vector<float>());
  EXPECT_NE(first.weight.to_vector<float>(), other.weight.to_vector<float>());
}

}  // namespace
}  // namespace weft::nn
