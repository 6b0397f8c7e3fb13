// SPDX-License-Identifier: Apache-2.0
#include "apps/linear_probe/logistic_regression.h"

#include <algorithm>

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/compare.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/linear.h"
#include "core/ops/reduce.h"

namespace weft::linear_probe {
namespace {

// Logits of so many examples are there at once.
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

}  // namespace weft::linear_probe
