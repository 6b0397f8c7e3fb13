// SPDX-License-Identifier: Apache-2.0
#include "optim/lbfgs.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "optim/optimizer.h"

namespace weft::optim {
namespace {

double dot(const Tensor& a, const Tensor& b) { return sum(a.to(DType::f64) * b.to(DType::f64)).item(); }

double largest(const Tensor& gradient) { return max(abs(gradient)).item(); }

}  // namespace

const char* name(LbfgsEnd end) {
  constexpr const char* kNames[] = {"gradient", "loss", "iterations", "line_search"};
  return kNames[static_cast<int>(end)];
}

Lbfgs::Lbfgs(const std::vector<NamedTensor>& parameters, const LbfgsOptions& options) : options_(options) {
  WEFT_CHECK(options.history > 0, "Lbfgs: expected a history of at least 1, got ", options.history);
  WEFT_CHECK(options.gradient_tolerance >= 0 && options.loss_tolerance >= 0,
             "Lbfgs: expected tolerances of at least 0, got ", options.gradient_tolerance, " and ",
             options.loss_tolerance);
  const NoGrad no_grad;
  const std::vector<NamedTensor> trained = trainable(parameters);
  WEFT_CHECK(!trained.empty(), "Lbfgs: no parameter requires a gradient");
  flat_ = FlatParameters::of(trained);
}

double Lbfgs::evaluate(const std::function<double()>& loss, LbfgsResult& result) {
  ++result.evaluations;
  flat_->zero_grad();
  const NoGrad recording(/*enabled=*/true);
  return loss();
}

void Lbfgs::move_to(const Tensor& start, const Tensor& direction, double step) {
  const NoGrad no_grad;
  flat_->master().copy_(start);
  flat_->master().add_(direction, step);
  flat_->weights_changed(/*copied=*/false);
}

Tensor Lbfgs::direction(const Tensor& gradient) const {
  Tensor q = neg(gradient);
  std::vector<double> weights(pairs_.size());
  for (size_t i = pairs_.size(); i-- > 0;) {
    weights[i] = dot(pairs_[i].step, q) / pairs_[i].product;
    q.add_(pairs_[i].change, -weights[i]);
  }
  if (!pairs_.empty()) q.mul_(pairs_.back().product / dot(pairs_.back().change, pairs_.back().change));
  for (size_t i = 0; i < pairs_.size(); ++i)
    q.add_(pairs_[i].step, weights[i] - dot(pairs_[i].change, q) / pairs_[i].product);
  return q;
}

void Lbfgs::remember(const Tensor& step, const Tensor& change) {
  const double product = dot(step, change);
  if (!(product > 1e-16 * dot(change, change))) return;  // rounding has spoiled the curvature
  pairs_.push_back({step, change, product});
  if (pairs_.size() > static_cast<size_t>(options_.history)) pairs_.pop_front();
}

LbfgsResult Lbfgs::minimize(const std::function<double()>& loss) {
  const NoGrad no_grad;
  LbfgsResult result;
  pairs_.clear();
  result.loss = evaluate(loss, result);
  Tensor gradient = flat_->gradient().clone();
  result.largest_gradient = largest(gradient);
  WEFT_CHECK(std::isfinite(result.loss) && std::isfinite(result.largest_gradient),
             "Lbfgs: expected numbers to start from, got a loss of ", result.loss, " and a largest gradient of ",
             result.largest_gradient);
  while (result.iterations < options_.max_iterations) {
    if (result.largest_gradient <= options_.gradient_tolerance) {
      result.end = LbfgsEnd::gradient;
      return result;
    }
    ++result.iterations;
    const Tensor along = direction(gradient), start = flat_->master().clone();
    const double slope = dot(gradient, along);
    LineSearchResult search;  // empty if rounding has spoiled the direction
    if (slope < 0) {
      const double first = pairs_.empty() ? std::min(1.0, 1 / std::sqrt(-slope)) : 1;
      search = strong_wolfe(
          {0, result.loss, slope}, first,
          [&](double step) -> LinePoint {
            move_to(start, along, step);
            const double there = evaluate(loss, result);
            return {step, there, dot(flat_->gradient(), along)};
          },
          options_.line_search);
      if (!search.found) {  // the last point is not the best one
        move_to(start, along, search.point.step);
        evaluate(loss, result);
      }
    }
    // Retry along the gradient itself; if that fails too, this is the lowest loss that rounding allows.
    if (search.point.step == 0) {
      if (pairs_.empty()) {
        result.end = LbfgsEnd::line_search;
        return result;
      }
      pairs_.clear();
      continue;
    }
    const Tensor next = flat_->gradient().clone();
    remember(mul(along, search.point.step), next - gradient);
    gradient = next;
    result.largest_gradient = largest(gradient);
    const double before = std::exchange(result.loss, search.point.loss);
    const double least = options_.loss_tolerance * std::max(std::abs(before), std::abs(result.loss));
    if (options_.loss_tolerance > 0 && before - result.loss < least) {
      result.end = LbfgsEnd::loss;
      return result;
    }
  }
  return result;
}

}  // namespace weft::optim
