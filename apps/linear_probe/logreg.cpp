// SPDX-License-Identifier: Apache-2.0
#include "apps/linear_probe/logreg.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/compare.h"
#include "core/ops/gather.h"
#include "core/ops/layers/linear.h"
#include "core/ops/layers/losses.h"
#include "core/ops/reduce.h"
#include "data/sampler.h"
#include "io/safetensors.h"
#include "train/record/class_names.h"
#include "train/record/run_folder.h"
#include "train/record/stopwatch.h"

namespace weft::linear_probe {
namespace {

// Logits of at most this number of examples exist at a time.
constexpr int64_t kRows = 16384;

/// Calls `body(values, labels)` with at most kRows examples at a time.
template <class Body>
void for_each_part(const Features& own, Body&& body) {
  const int64_t count = own.labels.numel();
  for (int64_t begin = 0; begin < count; begin += kRows) {
    const int64_t rows = std::min(kRows, count - begin);
    body(own.values.slice(0, begin, rows), own.labels.slice(0, begin, rows));
  }
}

}  // namespace

LogisticModel fit_logistic_regression(const Features& own, const dist::World& ranks, const LogisticOptions& options) {
  WEFT_CHECK(options.c > 0, "logistic regression: expected a C above 0, got ", options.c);
  const double count = ranks.sum({static_cast<double>(own.labels.numel())}, "examples").front();
  WEFT_CHECK(count > 0, "logistic regression: expected examples, got none");
  const DType dtype = own.values.dtype();
  LogisticModel model{Tensor::zeros({options.classes, own.values.size(1)}, dtype, ranks.device()).requires_grad_(),
                      Tensor::zeros({options.classes}, dtype, ranks.device()).requires_grad_(),
                      {}};
  optim::Lbfgs lbfgs(
      {{"weight", model.weight}, {"bias", model.bias}},
      {.max_iterations = options.max_iterations, .gradient_tolerance = 0, .loss_tolerance = options.loss_tolerance});
  // Divided by C times the number of examples, so that a tolerance means the same for sets of any size.
  const double pull = 1 / (options.c * count);
  model.result = lbfgs.minimize([&] {
    double loss = 0;
    for_each_part(own, [&](const Tensor& values, const Tensor& labels) {
      const Tensor part = mul(
          cross_entropy(linear(values, model.weight, model.bias), labels, {.reduction = Reduction::sum}), 1 / count);
      part.backward();
      loss += part.item();
    });
    const NoGrad no_grad;
    const Tensor& gradient = lbfgs.flat()->gradient();
    if (ranks.size() > 1) {
      ranks.group()->all_reduce(gradient, dist::ReduceOp::sum, {.name = "gradient of the logistic regression"})->wait();
      loss = ranks.sum({loss}, "loss of the logistic regression").front();
    }
    model.weight.grad().add_(model.weight, pull);
    return loss + pull / 2 * sum(mul(model.weight, model.weight)).item();
  });
  model.weight.requires_grad_(false);
  model.bias.requires_grad_(false);
  return model;
}

int64_t count_right(const LogisticModel& model, const Features& own) {
  const NoGrad no_grad;
  int64_t right = 0;
  for_each_part(own, [&](const Tensor& values, const Tensor& labels) {
    const Tensor guesses = argmax(linear(values, model.weight, model.bias), 1);
    right += static_cast<int64_t>(sum(eq(guesses, labels).to(DType::i64)).item());
  });
  return right;
}

namespace {

/// This rank's share of the examples at `first`, `first` + 1, … (`count` of them) of a random order.
Features share(const Features& all, const data::Sampler& order, int64_t first, int64_t count, const dist::World& ranks,
               DType dtype) {
  std::vector<int64_t> rows;
  for (int64_t i = ranks.rank(); i < count; i += ranks.size()) rows.push_back(order.index(0, first + i));
  const Tensor index = Tensor::from(rows, all.values.device());
  return {index_select(all.values, 0, index).to(dtype), index_select(all.labels, 0, index)};
}

double accuracy(const LogisticModel& model, const Features& own, const dist::World& ranks) {
  const std::vector<double> sums = ranks.sum(
      {static_cast<double>(count_right(model, own)), static_cast<double>(own.labels.numel())}, "right answers");
  return sums[0] / sums[1];
}

}  // namespace

std::vector<double> logreg_grid(int64_t values) {
  if (values == 1) return {1};
  std::vector<double> grid;
  for (int64_t i = 0; i < values; ++i)
    grid.push_back(std::pow(10, -6 + 11 * static_cast<double>(i) / static_cast<double>(values - 1)));
  return grid;
}

LogregResult evaluate_logreg(const Features& training, const Features& validation, const dist::World& ranks,
                             const LogregOptions& options, const std::function<void(const LogregTrial&)>& report) {
  const NoGrad no_grad;
  const int64_t all = training.labels.numel();
  WEFT_CHECK(all > 1, "logreg: expected at least 2 training examples, got ", all);
  const int64_t held_out = std::max<int64_t>(all / 10, 1);
  const data::Sampler order(all, {.seed = options.seed}), as_they_are(validation.labels.numel(), {.shuffle = false});
  const auto part = [&](const Features& of, const data::Sampler& in, int64_t first, int64_t count) {
    return share(of, in, first, count, ranks, options.dtype);
  };
  const Features rest = part(training, order, held_out, all - held_out), tenth = part(training, order, 0, held_out);
  const auto try_out = [&](double c, const Features& on, const Features& checked, LogregTrial& trial) {
    LogisticModel model = fit_logistic_regression(
        on, ranks, {.c = c, .classes = options.classes, .max_iterations = options.max_iterations});
    trial = {c, accuracy(model, checked, ranks), model.result};
    return model;
  };

  LogregResult result;
  result.chosen.accuracy = -1;
  for (const double c : logreg_grid(options.grid)) {
    LogregTrial trial;
    try_out(c, rest, tenth, trial);
    report(trial);
    if (trial.accuracy > result.chosen.accuracy) result.chosen = trial;
  }
  result.model = try_out(result.chosen.c, part(training, order, 0, all),
                         part(validation, as_they_are, 0, validation.labels.numel()), result.refit);
  return result;
}

namespace {

/// `logreg C 3.16228e-06: held-out accuracy 12.34, loss 4.60517, 17 iterations`.
std::string line(const LogregTrial& trial, const char* part) {
  char text[160];
  std::snprintf(text, sizeof text, "logreg C %g: %s accuracy %.4f, loss %.6g, %lld iterations", trial.c, part,
                100 * trial.accuracy, trial.result.loss, static_cast<long long>(trial.result.iterations));
  // At the limit of iterations the loss is above its minimum, and the more so the weaker the penalty is.
  return str(text, trial.result.end == optim::LbfgsEnd::iterations ? " (the limit)" : "");
}

}  // namespace

void run_logreg(const Options& options, const FeatureSets& features, const std::vector<std::string>& classes,
                const dist::World& ranks, const train::Signals& signals) {
  const train::Stopwatch watch;
  const auto say = [&](const std::string& text) {
    if (ranks.is_first()) std::cout << text << std::endl;
  };
  const LogregResult result =
      evaluate_logreg(features.training, features.validation, ranks,
                      {.classes = static_cast<int64_t>(classes.size()),
                       .grid = options.logreg_values,
                       .max_iterations = options.logreg_iterations,
                       .dtype = options.logreg_precision == "f64" ? DType::f64 : DType::f32,
                       .seed = static_cast<uint64_t>(options.seed)},
                      [&](const LogregTrial& trial) {
                        say(line(trial, "held-out"));
                        WEFT_CHECK(ranks.max(signals.stop_requested(), "stop") == 0, "stopped by a signal after C ",
                                   trial.c, "; the evaluation begins again");
                      });
  say(line(result.refit, "validation"));
  if (!ranks.is_first()) return;
  const train::RunFolder folder(options.out);
  StateDict classifier;
  classifier.tensors = {{"weight", result.model.weight.to(DType::f32)}, {"bias", result.model.bias.to(DType::f32)}};
  write_safetensors(folder.file("logreg.safetensors"), classifier,
                    {{train::kClassNames, train::class_names_text(classes)}});
  folder.write_summary({{"logreg_accuracy", result.refit.accuracy},
                        {"logreg_c", result.refit.c},
                        {"logreg_held_out_accuracy", result.chosen.accuracy},
                        {"logreg_iterations", result.refit.result.iterations},
                        {"logreg_seconds", watch.seconds()}});
}

}  // namespace weft::linear_probe
