// SPDX-License-Identifier: Apache-2.0
#include "core/distributions.h"

#include <cmath>
#include <limits>

#include "core/autograd.h"
#include "core/check_gradient.h"
#include "core/ops/binary.h"
#include "core/ops/layers/softmax.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "core/random.h"
#include "tests/support/devices.h"
#include "tests/support/error_text.h"

// Values of log_prob, entropy and kl_divergence: PyTorch 2.15's torch.distributions in f64.

namespace weft {
namespace {

using namespace distributions;
using ::testing::HasSubstr;

Tensor f64(const std::vector<double>& values) { return Tensor::from(values, {static_cast<int64_t>(values.size())}); }

void expect_near(const Tensor& found, const std::vector<double>& expected) {
  const std::vector<double> values = found.to_vector<double>();
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i)
    if (std::isinf(expected[i]))
      EXPECT_EQ(values[i], expected[i]);
    else
      EXPECT_NEAR(values[i], expected[i], 1e-9 * std::max(1.0, std::abs(expected[i]))) << i;
}

TEST(Distributions, EqualPyTorch) {
  const Normal p(f64({0.5, -1}), f64({2, 0.25})), q(f64({0, 1}), f64({1, 3}));
  expect_near(p.log_prob(f64({1.5, -0.5})), {-1.737085713764618, -1.532644172084782});
  expect_near(p.entropy(), {2.112085713764618, 0.0326441720847821});
  expect_near(kl_divergence(p, q), {0.9318528194400547, 2.2106010942324446});
  const Uniform u(f64({0, -1}), f64({2, 3}));
  expect_near(u.log_prob(f64({1, 3})), {-0.6931471805599453, -INFINITY});
  expect_near(u.entropy(), {0.6931471805599453, 1.3862943611198906});
  const Bernoulli a(f64({0.3, -2})), b(f64({-1, 0.5}));
  expect_near(a.log_prob(f64({1, 0})), {-0.5543552444685271, -0.1269280110429727});
  expect_near(a.entropy(), {0.6820224894250294, 0.36533385508720784});
  expect_near(kl_divergence(a, b), {0.2056817149048524, 0.5491416680818404});
  const Categorical c(Tensor::from(std::vector<double>{1, 2, 3, 0, -INFINITY, 0}, {2, 3}));
  const Categorical d(Tensor::from(std::vector<double>{0, 0, 1, 1, -INFINITY, 2}, {2, 3}));
  expect_near(c.log_prob(Tensor::from(std::vector<int64_t>{2, 0}, {2})), {-0.4076059644443806, -0.6931471805599453});
  expect_near(c.entropy(), {0.832395581839939, 0.6931471805599453});
  expect_near(kl_divergence(c, d), {0.053808176317290034, 0.12011450695827774});
}

TEST(Distributions, SmallBernoulliResultsKeepTheirDigits) {
  const Bernoulli p(f64({30, -30})), q(f64({31, -31}));
  expect_near(p.log_prob(f64({1, 0})) * 1e13, {-9.35762296884e-14 * 1e13, -9.35762296884e-14 * 1e13});
  EXPECT_GT(p.entropy().to_vector<double>()[0], 2.9e-12);
  for (const double kl : kl_divergence(p, q).to_vector<double>()) EXPECT_GT(kl, 0);
  const Bernoulli single(f64({15}).to(DType::f32));
  EXPECT_LT(single.log_prob(f64({1}).to(DType::f32)).item(), -3.0e-7);
}

TEST(Distributions, CategoricalTakesSeveralSamplesOfEachRow) {
  const Categorical rows(Tensor::from(std::vector<double>{0, 1, 2, 3, 0, 0}, {2, 3}));
  const Tensor classes = Tensor::from(std::vector<int64_t>{0, 0, 2, 1}, {2, 2});
  const std::vector<double> all = rows.log_probabilities().to_vector<double>();
  expect_near(rows.log_prob(classes), {all[0], all[3], all[2], all[4]});
  EXPECT_THAT(error_text([&] { rows.log_prob(Tensor::zeros({1}, DType::i64)); }),
              HasSubstr("Categorical: expected a class for each row of"));
}

TEST(Distributions, GradientsAreThoseOfDifferences) {
  const auto leaf = [](const std::vector<double>& values) { return f64(values).requires_grad_(); };
  const std::vector<Tensor> inputs{leaf({0.5, -1}), leaf({2, 0.25}), leaf({0.2, 0.7})};
  const auto total = [](const std::vector<Tensor>& v) {
    const Normal p(v[0], v[1]), q(v[2], v[1] + 1.0);
    const Bernoulli a(v[0]), b(v[2]);
    const Categorical c(v[0]), d(v[2]);
    return sum(p.log_prob(v[2])) + sum(p.entropy()) + sum(kl_divergence(p, q)) + sum(a.entropy()) +
           sum(kl_divergence(a, b)) + c.entropy() + kl_divergence(c, d);
  };
  check_gradient(total, inputs);
}

TEST(Distributions, AMaskedClassHasNoGradientAndNoNan) {
  Tensor logits = f64({1, -INFINITY, 0});
  logits.requires_grad_();
  Categorical(logits).entropy().backward();
  for (const double g : logits.grad().to_vector<double>()) EXPECT_TRUE(std::isfinite(g)) << g;
}

TEST(Distributions, SamplesHaveTheirMoments) {
  constexpr int64_t kSamples = 20000;
  const double error = 6 / std::sqrt(double{kSamples});  // a mean's, in standard deviations
  for (const DeviceKind kind : tests::test_devices()) {
    manual_seed(3);
    const Device device{kind, 0};
    const auto full = [&](double value) { return Tensor::full({kSamples}, value, DType::f32, device); };
    const auto mean_of = [](const Tensor& x) { return mean(x.to(DType::f64)).item(); };
    const Tensor normal = Normal(full(2), full(3)).sample();
    EXPECT_NEAR(mean_of(normal), 2, 3 * error);
    EXPECT_NEAR(mean_of(square(normal - 2)), 9, 9 * std::sqrt(2.0) * error);
    EXPECT_FALSE(normal.requires_grad());
    EXPECT_NEAR(mean_of(Uniform(full(-1), full(1)).sample()), 0, error / std::sqrt(3.0));
    EXPECT_NEAR(mean_of(Bernoulli(full(std::log(3.0))).sample()), 0.75, 0.5 * error);
    const Tensor logits =
        Tensor::from(std::vector<float>{0, std::log(2.0f), std::log(5.0f)}, {1, 3}, device).expand({kSamples, 3});
    const Tensor classes = Categorical(logits).sample();
    EXPECT_EQ(classes.sizes(), Shape{kSamples});
    EXPECT_NEAR(mean_of(classes), 0 * 0.125 + 1 * 0.25 + 2 * 0.625, error);
    const Tensor hard = gumbel_softmax(logits, {.tau = 0.5, .hard = true});
    EXPECT_NEAR(mean_of(hard.select(1, 2)), 0.625, 0.5 * error) << "the largest is a class of softmax(logits)";
    for (const double one : sum(hard, {1}).to_vector<double>()) ASSERT_EQ(one, 1);
  }
}

TEST(Distributions, HardGumbelRowsHaveTheSoftOnesGradient) {
  const auto gradient = [](bool hard) {
    manual_seed(5);
    Tensor logits = f64({1, 2, 0.5});
    logits.requires_grad_();
    sum(gumbel_softmax(logits, {.tau = 0.7, .hard = hard}) * f64({3, -1, 2})).backward();
    return logits.grad().to_vector<double>();
  };
  EXPECT_EQ(gradient(true), gradient(false));
}

TEST(Distributions, RsampleHasGradients) {
  Tensor mean = f64({1, 2}), std = f64({0.5, 2});
  mean.requires_grad_();
  std.requires_grad_();
  const Tensor x = Normal(mean, std).rsample();
  sum(x).backward();
  expect_near(mean.grad(), {1, 1});
  expect_near(std.grad(), ((x - mean) / std).detach().to_vector<double>());
}

TEST(Distributions, RefuseOtherParameters) {
  const Tensor whole = Tensor::zeros({2}, DType::i64);
  EXPECT_THAT(error_text([&] { Normal(f64({1}), whole); }),
              HasSubstr("Normal: expected floating parameters, got i64[2]"));
  EXPECT_THAT(error_text([&] { Normal(f64({1}), Tensor::zeros({1})); }),
              HasSubstr("Normal: expected parameters of one dtype"));
  EXPECT_THAT(error_text([&] { Uniform(whole, whole); }), HasSubstr("Uniform: expected floating"));
  EXPECT_THAT(error_text([&] { Bernoulli b(whole); }), HasSubstr("Bernoulli: expected floating"));
  EXPECT_THAT(error_text([&] { Categorical c(whole); }), HasSubstr("Categorical: expected floating"));
  EXPECT_THAT(error_text([&] { Categorical c(Tensor::zeros({})); }),
              HasSubstr("Categorical: expected logits [..., classes]"));
  EXPECT_THAT(error_text([&] { gumbel_softmax(whole); }), HasSubstr("gumbel_softmax: expected floating"));
  EXPECT_THAT(error_text([&] { gumbel_softmax(f64({1}), {.tau = 0}); }), HasSubstr("a temperature above 0, got 0"));
}

TEST(Distributions, RefuseImpossibleParametersOnTheCpu) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_THAT(error_text([] {
                Normal(f64({0, 0}), f64({1, -1}));
              }),
              HasSubstr("Normal: expected standard deviations above 0, got -1 in f64[2]"));
  EXPECT_THAT(error_text([] { Normal(f64({0}), f64({0})); }), HasSubstr("above 0, got 0 in f64[1]"));
  EXPECT_THAT(error_text([] { Normal(f64({0}), f64({NAN})); }), HasSubstr("above 0, got nan in f64[1]"));
  EXPECT_THAT(error_text([] { Normal(f64({NAN}), f64({1})); }),
              HasSubstr("Normal: expected means that are numbers, got NaN in f64[1]"));
  for (const double high : {1.0, 0.5, -kInfinity, double{NAN}})
    EXPECT_THAT(error_text([&] {
                  Uniform(f64({0, 1}), f64({1, high}));
                }),
                HasSubstr("Uniform: expected low < high everywhere, got f64[2]"));
  EXPECT_THAT(error_text([] {
                Bernoulli b(f64({0, NAN}));
              }),
              HasSubstr("Bernoulli: expected logits that are numbers, got NaN in f64[2]"));
  for (const double bad : {kInfinity, double{NAN}})
    EXPECT_THAT(error_text([&] {
                  Categorical c(f64({0, bad}));
                }),
                HasSubstr("Categorical: expected rows of logits with a finite largest one"));
  EXPECT_THAT(error_text([&] {
                Categorical c(f64({-kInfinity, -kInfinity}));
              }),
              HasSubstr("-infinity alone in f64[2]"));
  EXPECT_EQ(Categorical(f64({-kInfinity, 0})).sample().item(), 1) << "a class without a chance is allowed";
  Bernoulli sure(f64({kInfinity, -kInfinity}));
  EXPECT_EQ(sure.sample().to_vector<double>(), (std::vector<double>{1, 0}));
  EXPECT_EQ(Normal(Tensor::zeros({0}), Tensor::ones({0})).sample().numel(), 0);
}

}  // namespace
}  // namespace weft
