// SPDX-License-Identifier: Apache-2.0
// Logistic regression against scikit-learn (tests/golden/logistic.py), over ranks, and the choice of C.
#include "apps/linear_probe/logreg.h"

#include <gmock/gmock.h>

#include <cmath>

#include "core/ops/binary.h"
#include "core/ops/random.h"
#include "dist/group/process_group.h"
#include "tests/golden/golden.h"
#include "tests/support/error_text.h"

namespace weft::tests {
namespace {

using linear_probe::Features;
using linear_probe::LogisticModel;

const dist::World& alone() {
  static const dist::World ranks = dist::World::around(dist::make_process_group_alone());
  return ranks;
}

/// The regressions of scikit-learn have an arbitrary constant in their biases.
std::vector<double> centred(const Tensor& bias) {
  std::vector<double> values = bias.to_vector<double>();
  double mean = 0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  for (double& value : values) value -= mean;
  return values;
}

struct Golden {
  golden::File file{"logistic"};
  Features features{file["values"], file["labels"]};
};

TEST(LogisticRegression, EqualsScikitLearns) {
  const Golden golden;
  for (const char* c : {"0.001", "0.1", "1", "10", "1000"}) {
    const double C = std::atof(c);
    const LogisticModel model =
        fit_logistic_regression(golden.features, alone(), {.c = C, .classes = 5, .loss_tolerance = 1e-15});
    const std::string name = c;
    golden::expect_close(model.weight, golden.file[name + ".weight"], name + " weight", 1e-5);
    golden::expect_close(centred(model.bias), centred(golden.file[name + ".bias"]), name + " bias", 1e-5);
    const double wanted = golden.file[name + ".loss"].item();
    EXPECT_NEAR(model.result.loss * C * 90, wanted, 1e-9 * wanted) << name;
    EXPECT_EQ(count_right(model, golden.features), golden.file[name + ".right"].item()) << name;
    EXPECT_LT(model.result.iterations, 300) << name;
  }
}

TEST(LogisticRegression, InSinglePrecisionIsNear) {
  const Golden golden;
  const Features single{golden.features.values.to(DType::f32), golden.features.labels};
  const LogisticModel model = fit_logistic_regression(single, alone(), {.c = 1, .classes = 5});
  EXPECT_EQ(model.weight.dtype(), DType::f32);
  golden::expect_close(model.weight.to(DType::f64), golden.file["1.weight"], "weight", 1e-2);
}

// Rank r has the rows r, r + ranks, …; with 91 ranks one of them has none.
TEST(LogisticRegression, IsTheSameOverRanks) {
  const Golden golden;
  const LogisticModel one = fit_logistic_regression(golden.features, alone(), {.c = 1, .classes = 5});
  for (const int size : {2, 3, 91}) {
    std::vector<std::vector<double>> weights(static_cast<size_t>(size));
    dist::run_ranks(size, [&](const dist::ProcessGroupPtr& group) {
      const dist::World ranks = dist::World::around(group);
      const int64_t rows = (90 - group->rank() + size - 1) / size;
      const Features own{golden.features.values.slice(0, std::min(group->rank(), 89), rows, size).contiguous(),
                         golden.features.labels.slice(0, std::min(group->rank(), 89), rows, size).contiguous()};
      const LogisticModel model = fit_logistic_regression(own, ranks, {.c = 1, .classes = 5});
      weights[static_cast<size_t>(group->rank())] = model.weight.to_vector<double>();
    });
    for (const auto& other : weights) EXPECT_EQ(other, weights.front());  // to the last bit
    golden::expect_close(weights.front(), one.weight.to_vector<double>(), str(size, " ranks"), 1e-6);
  }
}

TEST(LogisticRegression, RefusesWhatItCannotFit) {
  const Golden golden;
  EXPECT_EQ(error_text([&] { fit_logistic_regression(golden.features, alone(), {.c = 0, .classes = 5}); }),
            "logistic regression: expected a C above 0, got 0");
  const Features none{Tensor::zeros({0, 7}, DType::f64), Tensor::zeros({0}, DType::i64)};
  EXPECT_EQ(error_text([&] { fit_logistic_regression(none, alone(), {.classes = 5}); }),
            "logistic regression: expected examples, got none");
}

TEST(Logreg, TheGridIsThePapers) {
  const std::vector<double> grid = linear_probe::logreg_grid(45);
  ASSERT_EQ(grid.size(), 45u);
  EXPECT_DOUBLE_EQ(grid.front(), 1e-6);
  EXPECT_DOUBLE_EQ(grid.back(), 1e5);
  for (size_t i = 0; i + 1 < grid.size(); ++i) EXPECT_NEAR(grid[i + 1] / grid[i], std::pow(10, 0.25), 1e-12);
  EXPECT_EQ(linear_probe::logreg_grid(1), std::vector<double>{1});
}

/// Examples of 4 classes in 20 dimensions of which 18 are noise.
Features noisy(int64_t count) {
  std::vector<int64_t> labels;
  std::vector<float> centres;
  for (int64_t i = 0; i < count; ++i) {
    labels.push_back(i % 4);
    for (int64_t d = 0; d < 20; ++d) centres.push_back(d == i % 2 ? 2.0f : d == 2 + i % 4 / 2 ? 1.5f : 0.0f);
  }
  return {Tensor::from(centres, Shape{count, 20}) + normal({count, 20}), Tensor::from(labels)};
}

TEST(Logreg, ChoosesCOnAHeldOutTenthAndTrainsAgainOnAll) {
  const Features training = noisy(200), validation = noisy(400);
  std::vector<linear_probe::LogregTrial> trials;
  const linear_probe::LogregOptions options{.classes = 4, .grid = 12, .seed = 3};
  const linear_probe::LogregResult result =
      evaluate_logreg(training, validation, alone(), options, [&](const auto& trial) { trials.push_back(trial); });
  ASSERT_EQ(trials.size(), 12u);
  double best = -1, c = 0;
  for (const auto& trial : trials) {
    EXPECT_NEAR(trial.accuracy * 20, std::round(trial.accuracy * 20), 1e-9);  // multiples of 1 / 20
    if (trial.accuracy > best) best = trial.accuracy, c = trial.c;
  }
  EXPECT_EQ(result.chosen.c, c);  // the smallest of the best
  EXPECT_EQ(result.chosen.accuracy, best);
  EXPECT_EQ(result.refit.c, c);

  const LogisticModel all = linear_probe::fit_logistic_regression({training.values.to(DType::f64), training.labels},
                                                                  alone(), {.c = c, .classes = 4});
  golden::expect_close(result.model.weight, all.weight, "weight", 1e-4);
  const auto right =
      static_cast<double>(count_right(result.model, {validation.values.to(DType::f64), validation.labels}));
  EXPECT_DOUBLE_EQ(result.refit.accuracy, right / 400);
  EXPECT_GT(result.refit.accuracy, 0.6);
}

// Labels without any meaning: a held-out example that was trained on would be known.
TEST(Logreg, TheTenthIsNotTrainedOn) {
  Features training{normal({200, 400}), Tensor::from(std::vector<int64_t>(200))};
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < 200; ++i) labels.push_back(i % 10);
  training.labels = Tensor::from(labels);
  const auto result = evaluate_logreg(training, training, alone(), {.classes = 10, .grid = 1}, [](const auto&) {});
  EXPECT_LT(result.chosen.accuracy, 0.5);
  EXPECT_EQ(result.refit.accuracy, 1);  // 400 dimensions know all of 200 by heart
}

TEST(Logreg, IsTheSameOverRanks) {
  const Features training = noisy(101), validation = noisy(53);
  const linear_probe::LogregOptions options{.classes = 4, .grid = 4};
  const auto one = evaluate_logreg(training, validation, alone(), options, [](const auto&) {});
  dist::run_ranks(3, [&](const dist::ProcessGroupPtr& group) {
    const dist::World ranks = dist::World::around(group);
    const auto result = evaluate_logreg(training, validation, ranks, options, [](const auto&) {});
    EXPECT_EQ(result.chosen.c, one.chosen.c);
    EXPECT_EQ(result.refit.accuracy, one.refit.accuracy);
    golden::expect_close(result.model.weight, one.model.weight, "weight", 1e-5);
  });
}

}  // namespace
}  // namespace weft::tests
