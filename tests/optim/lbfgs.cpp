// SPDX-License-Identifier: Apache-2.0
// L-BFGS against minima that are known, and its line search against the conditions that it promises.
#include "optim/lbfgs.h"

#include <cmath>
#include <limits>

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/matmul.h"
#include "core/ops/random.h"
#include "core/ops/reduce.h"
#include "tests/support/error_text.h"

namespace weft::optim {
namespace {

/// 1/2 sum of d_i (x_i - i)^2 with curvatures from 1 to 1000: the minimum is 0, at x_i = i.
double of_bowl(const Tensor& x) {
  const int64_t n = x.numel();
  std::vector<double> curvature, centre;
  for (int64_t i = 0; i < n; ++i) {
    curvature.push_back(std::pow(1000.0, static_cast<double>(i) / static_cast<double>(n - 1)));
    centre.push_back(static_cast<double>(i));
  }
  const Tensor apart = x - Tensor::from(centre).to(x.dtype());
  const Tensor loss = 0.5 * sum(Tensor::from(curvature).to(x.dtype()) * apart * apart);
  loss.backward();
  return loss.item();
}

TEST(Lbfgs, FindsTheBottomOfABowl) {
  const Tensor x = Tensor::zeros({20}, DType::f64).requires_grad_();
  Lbfgs lbfgs({{"x", x}}, {.gradient_tolerance = 1e-9, .loss_tolerance = 0});
  const LbfgsResult result = lbfgs.minimize([&] { return of_bowl(x); });
  EXPECT_EQ(result.end, LbfgsEnd::gradient);
  EXPECT_LE(result.largest_gradient, 1e-9);
  EXPECT_LT(result.iterations, 300);  // SciPy's L-BFGS-B needs 234, steepest descent thousands
  EXPECT_LT(result.evaluations, 1.2 * static_cast<double>(result.iterations));
  const std::vector<double> found = x.detach().to_vector<double>();
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], static_cast<double>(i), 1e-9);
}

// In n dimensions, with all pairs kept and nearly exact line searches, L-BFGS is conjugate gradients: n steps.
TEST(Lbfgs, NeedsAsManyStepsAsDimensions) {
  const Tensor x = Tensor::zeros({6}, DType::f64).requires_grad_();
  Lbfgs lbfgs({{"x", x}}, {.gradient_tolerance = 1e-6,
                           .loss_tolerance = 0,
                           .line_search = {.decrease = 1e-6, .curvature = 1e-5, .evaluations = 100}});
  EXPECT_LE(lbfgs.minimize([&] { return of_bowl(x); }).iterations, 8);
}

// Rosenbrock's valley, (1 - a)^2 + 100 (b - a^2)^2, from (-1.2, 1).
TEST(Lbfgs, FollowsACurvedValley) {
  const Tensor a = Tensor::from(std::vector<double>{-1.2}).requires_grad_();
  const Tensor b = Tensor::from(std::vector<double>{1}).requires_grad_();
  Lbfgs lbfgs({{"a", a}, {"b", b}}, {.gradient_tolerance = 1e-10, .loss_tolerance = 0});
  const LbfgsResult result = lbfgs.minimize([&] {
    const Tensor one = Tensor::ones({1}, DType::f64), height = b - a * a;
    const Tensor loss = sum((one - a) * (one - a) + 100 * (height * height));
    loss.backward();
    return loss.item();
  });
  EXPECT_NEAR(a.detach().item(), 1, 1e-9);
  EXPECT_NEAR(b.detach().item(), 1, 1e-9);
  EXPECT_LT(result.iterations, 60);
}

// 1/2 |A w - y|^2 + l/2 |w|^2: the gradient A'(A w - y) + l w is 0 at the minimum.
TEST(Lbfgs, RidgeRegressionsGradientVanishes) {
  const Tensor A = normal({40, 12}, 0, 1, DType::f64), y = normal({40, 1}, 0, 1, DType::f64);
  const Tensor w = Tensor::zeros({12, 1}, DType::f64).requires_grad_();
  Lbfgs lbfgs({{"w", w}}, {.gradient_tolerance = 1e-10, .loss_tolerance = 0});
  const LbfgsResult result = lbfgs.minimize([&] {
    const Tensor apart = matmul(A, w) - y;
    const Tensor loss = 0.5 * sum(apart * apart) + 0.05 * sum(w * w);
    loss.backward();
    return loss.item();
  });
  EXPECT_EQ(result.end, LbfgsEnd::gradient);
  const NoGrad no_grad;
  const Tensor gradient = matmul(A.transpose(0, 1), matmul(A, w) - y) + 0.1 * w;
  for (const double value : gradient.to_vector<double>()) EXPECT_NEAR(value, 0, 1e-9);
}

TEST(Lbfgs, InSinglePrecisionEndsWhereNumbersDo) {
  const Tensor x = Tensor::zeros({20}).requires_grad_();
  Lbfgs lbfgs({{"x", x}}, {.gradient_tolerance = 0, .loss_tolerance = 0});
  const LbfgsResult result = lbfgs.minimize([&] { return of_bowl(x); });
  EXPECT_NE(result.end, LbfgsEnd::iterations) << name(result.end);
  EXPECT_LT(result.loss, 1e-7);
}

TEST(Lbfgs, SaysWhyItEnded) {
  const auto ended = [](const LbfgsOptions& options) {
    const Tensor x = Tensor::zeros({20}, DType::f64).requires_grad_();
    Lbfgs lbfgs({{"x", x}}, options);
    return lbfgs.minimize([&] { return of_bowl(x); });
  };
  EXPECT_EQ(ended({.max_iterations = 3}).end, LbfgsEnd::iterations);
  EXPECT_EQ(ended({.max_iterations = 3}).iterations, 3);
  EXPECT_EQ(ended({.gradient_tolerance = 1e9}).evaluations, 1);
  EXPECT_EQ(ended({.gradient_tolerance = 0, .loss_tolerance = 0.5}).end, LbfgsEnd::loss);
  EXPECT_STREQ(name(LbfgsEnd::line_search), "line_search");
}

TEST(Lbfgs, RefusesWhatIsNoStart) {
  const Tensor frozen = Tensor::zeros({2}, DType::f64);
  EXPECT_EQ(error_text([&] { Lbfgs({{"x", frozen}}); }), "Lbfgs: no parameter requires a gradient");
  const Tensor x = Tensor::zeros({2}, DType::f64).requires_grad_();
  EXPECT_EQ(error_text([&] { Lbfgs({{"x", x}}, {.history = 0}); }), "Lbfgs: expected a history of at least 1, got 0");
  EXPECT_EQ(error_text([&] {
              Lbfgs({{"x", x}}, {.loss_tolerance = -1});
            }),
            "Lbfgs: expected tolerances of at least 0, got 1e-08 and -1");
  Lbfgs lbfgs({{"x", x}});
  EXPECT_EQ(error_text([&] { lbfgs.minimize([] { return std::nan(""); }); }),
            "Lbfgs: expected numbers to start from, got a loss of nan and a largest gradient of 0");
}

/// f along a line, counted.
struct Line {
  std::function<double(double)> loss, slope;
  int evaluations = 0;
  LinePoint operator()(double step) {
    ++evaluations;
    return {step, loss(step), slope(step)};
  }
};

void expect_wolfe(Line line, double first, const LineSearchOptions& options) {
  const LinePoint start = line(0);
  const LineSearchResult result = detail::strong_wolfe(
      start, first, [&](double step) { return line(step); }, options);
  EXPECT_TRUE(result.found);
  EXPECT_EQ(result.evaluations, line.evaluations - 1);
  EXPECT_LE(result.point.loss, start.loss + options.decrease * result.point.step * start.slope);
  EXPECT_LE(std::abs(result.point.slope), -options.curvature * start.slope);
  EXPECT_LT(result.evaluations, 50) << first;
}

TEST(LineSearch, SatisfiesTheConditionsFromAnyFirstStep) {
  const Line parabola{[](double x) { return (x - 3) * (x - 3); }, [](double x) { return 2 * (x - 3); }};
  // From More and Thuente 1994, (5.1) and (5.2): flat far away; a corner that is nearly sharp.
  const Line flat{[](double x) { return -x / (x * x + 2); },
                  [](double x) { return (x * x - 2) / ((x * x + 2) * (x * x + 2)); }};
  const Line sharp{[](double x) { return std::pow(x + 0.004, 5) - 2 * std::pow(x + 0.004, 4); },
                   [](double x) { return 5 * std::pow(x + 0.004, 4) - 8 * std::pow(x + 0.004, 3); }};
  for (const Line& line : {parabola, flat, sharp})
    for (const double first : {1e-3, 0.1, 1.0, 10.0, 1000.0})
      for (const double curvature : {0.9, 0.1, 1e-3})
        expect_wolfe(line, first, {.decrease = 1e-4, .curvature = curvature, .evaluations = 50});
}

TEST(LineSearch, ASlopeThatIsFlatEnoughIsNotTakenTooFarUp) {
  const Line parabola{[](double x) { return (x - 3) * (x - 3); }, [](double x) { return 2 * (x - 3); }};
  expect_wolfe(parabola, 5.5, {.decrease = 0.3, .curvature = 0.9});
}

TEST(LineSearch, StepsBackFromWhereTheLossIsNoNumber) {
  const Line line{[](double x) { return x < 2 ? -std::log(2 - x) * 0.1 - x : std::nan(""); },
                  [](double x) { return x < 2 ? 0.1 / (2 - x) - 1 : std::nan(""); }};
  expect_wolfe(line, 50, {});
  const Line steep{[](double x) { return x < 1 ? -x : std::numeric_limits<double>::infinity(); },
                   [](double x) { return x < 1 ? -1.0 : std::nan(""); }};
  Line counted = steep;  // falls up to its edge: no place is flat
  const LineSearchResult result =
      detail::strong_wolfe(counted(0), 4, [&](double step) { return counted(step); }, {.evaluations = 20});
  EXPECT_FALSE(result.found);
  EXPECT_EQ(result.evaluations, 20);
  EXPECT_GT(result.point.step, 0.9);  // the best place seen
  EXPECT_LT(result.point.step, 1);
}

TEST(LineSearch, RefusesBadStarts) {
  const auto error = [](const LinePoint& start, double first, const LineSearchOptions& options) {
    return error_text([&] {
      detail::strong_wolfe(
          start, first, [](double) { return LinePoint{}; }, options);
    });
  };
  EXPECT_EQ(error({0, 1, 2}, 1, {}), "line search: expected a slope below 0, got 2");
  EXPECT_EQ(error({0, 1, -2}, 0, {}), "line search: expected a first step above 0, got 0");
  EXPECT_EQ(error({0, 1, -2}, 1, {.decrease = 0.5, .curvature = 0.1}),
            "line search: expected 0 < decrease < curvature < 1, got 0.5 and 0.1");
}

}  // namespace
}  // namespace weft::optim
