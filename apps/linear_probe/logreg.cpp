// SPDX-License-Identifier: Apache-2.0
#include "apps/linear_probe/logreg.h"

#include <cmath>

#include "core/autograd.h"
#include "core/ops/gather.h"
#include "data/sampler.h"

namespace weft::linear_probe {
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

}  // namespace weft::linear_probe
