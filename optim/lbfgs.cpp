// SPDX-License-Identifier: Apache-2.0
#include "optim/lbfgs.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "kernels/error.h"
#include "optim/optimizer.h"

namespace weft::optim {
namespace {

/// The minimum of the cubic through two points and their slopes; NaN if it has none.
double cubic_minimum(const LinePoint& a, const LinePoint& b) {
  const double d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.step - b.step);
  const double d2 = std::copysign(std::sqrt(d1 * d1 - a.slope * b.slope), b.step - a.step);
  return b.step - (b.step - a.step) * (b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2);
}

/// A running search: the conditions, and the evaluations left.
class Search {
 public:
  Search(const LinePoint& start, const std::function<LinePoint(double)>& at, const LineSearchOptions& options)
      : start_(start), at_(at), options_(options), best_(start) {}

  LineSearchResult run(double first) {
    LinePoint previous = start_;
    double step = first;
    while (evaluations_ < options_.evaluations) {
      const LinePoint point = evaluate(step);
      if (too_high(point) || !not_above(point, previous)) return zoom(previous, point);
      if (flat_enough(point)) return {point, true, evaluations_};
      if (point.slope >= 0) return zoom(point, previous);
      const double guess = cubic_minimum(previous, point);
      previous = point;
      step = guess > 2 * point.step && guess < 10 * point.step ? guess : 2 * point.step;
    }
    return give_up();
  }

 private:
  LinePoint evaluate(double step) {
    ++evaluations_;
    const LinePoint point = at_(step);
    if (point.loss < best_.loss) best_ = point;
    return point;
  }
  bool too_high(const LinePoint& point) const {
    if (!std::isfinite(point.slope)) return true;
    if (point.loss <= start_.loss + options_.decrease * point.step * start_.slope) return false;
    return std::abs(point.loss - start_.loss) > rounding(point, start_) ||
           point.slope > (2 * options_.decrease - 1) * start_.slope;
  }
  double rounding(const LinePoint& a, const LinePoint& b) const {
    return options_.rounding * std::max(std::abs(a.loss), std::abs(b.loss));
  }
  /// Compares with the precision that rounded losses have.
  bool not_above(const LinePoint& point, const LinePoint& than) const {
    return point.loss <= than.loss + rounding(point, than);
  }
  bool flat_enough(const LinePoint& point) const { return std::abs(point.slope) <= -options_.curvature * start_.slope; }
  LineSearchResult give_up() const { return {best_, false, evaluations_}; }

  /// A point between `low`, the best point that decreases enough, and `high` satisfies both conditions.
  LineSearchResult zoom(LinePoint low, LinePoint high) {
    while (evaluations_ < options_.evaluations) {
      const double width = high.step - low.step;
      if (std::abs(width) <= 1e-12 * std::max(low.step, high.step)) break;
      const double share = (cubic_minimum(low, high) - low.step) / width;
      // Bisect if the point is too near to an end, if the bracket hardly shrinks, or if there is no minimum.
      const LinePoint point = evaluate(low.step + width * (share > 0.1 && share < 0.9 ? share : 0.5));
      if (too_high(point) || !not_above(point, low)) {
        high = point;
        continue;
      }
      if (flat_enough(point)) return {point, true, evaluations_};
      if (point.slope * width >= 0) high = low;
      low = point;
    }
    return give_up();
  }

  const LinePoint& start_;
  const std::function<LinePoint(double)>& at_;
  const LineSearchOptions& options_;
  LinePoint best_;
  int evaluations_ = 0;
};

}  // namespace

LineSearchResult detail::strong_wolfe(const LinePoint& start, double first, const std::function<LinePoint(double step)>& at,
                              const LineSearchOptions& options) {
  WEFT_CHECK(start.slope < 0, "line search: expected a slope below 0, got ", start.slope);
  WEFT_CHECK(first > 0, "line search: expected a first step above 0, got ", first);
  WEFT_CHECK(options.decrease > 0 && options.decrease < options.curvature && options.curvature < 1,
             "line search: expected 0 < decrease < curvature < 1, got ", options.decrease, " and ", options.curvature);
  return Search(start, at, options).run(first);
}

namespace {

double dot(const Tensor& a, const Tensor& b) { return sum(a.to(DType::f64) * b.to(DType::f64)).item(); }

double largest(const Tensor& gradient) { return max(abs(gradient)).item(); }

}  // namespace

const char* name(LbfgsEnd end) {
  constexpr const char* kNames[] = {"gradient", "loss", "iterations", "line_search"};
  return kNames[static_cast<int>(end)];
}

Lbfgs::Lbfgs(const std::vector<NamedTensor>& parameters, const LbfgsOptions& options)
    : parameters_(parameters), options_(options) {
  WEFT_CHECK(options.history > 0, "Lbfgs: expected a history of at least 1, got ", options.history);
  WEFT_CHECK(options.gradient_tolerance >= 0 && options.loss_tolerance >= 0,
             "Lbfgs: expected tolerances of at least 0, got ", options.gradient_tolerance, " and ",
             options.loss_tolerance);
  bind();
}

void Lbfgs::bind() {
  const NoGrad no_grad;
  const std::vector<NamedTensor> trained = trainable(parameters_);
  WEFT_CHECK(!trained.empty(), "Lbfgs: no parameter requires a gradient");
  flat_ = FlatParameters::of(trained);
  flat_->check_bound("Lbfgs");
  for (const NamedTensor& parameter : trained)
    WEFT_CHECK(!flat_->is_divided(parameter.tensor) && flat_->stages().others.empty(), "Lbfgs: '", parameter.name, "' ",
               parameter.tensor, " is one rank's part of the model: its sums would miss the others' parts. Use ",
               "DDP, or another optimizer");
  ranges_ = flat_->ranges(trained);
}

Tensor Lbfgs::gradient() {
  const Tensor& all = flat_->gradient();
  if (ranges_.size() == 1 && ranges_[0].numel == flat_->numel()) return all.clone();
  const Tensor own = zeros_like(all);  // other parameters in the same buffers stay
  for (const FlatRange& range : ranges_)
    own.slice(0, range.offset, range.numel).copy_(all.slice(0, range.offset, range.numel));
  return own;
}

double Lbfgs::evaluate(const std::function<double()>& loss, LbfgsResult& result) {
  ++result.evaluations;
  for (const NamedTensor& parameter : parameters_) parameter.tensor.zero_grad();
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
  if (pairs_.size() > static_cast<size_t>(options_.history)) pairs_.erase(pairs_.begin());
}

LbfgsResult Lbfgs::minimize(const std::function<double()>& loss) {
  WEFT_CHECK(loss, "Lbfgs: expected a loss function, got none");
  const NoGrad no_grad;
  bind();
  LbfgsResult result;
  pairs_.clear();
  result.loss = evaluate(loss, result);
  Tensor gradient = this->gradient();
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
      search = detail::strong_wolfe(
          {0, result.loss, slope}, first,
          [&](double step) -> LinePoint {
            move_to(start, along, step);
            const double there = evaluate(loss, result);
            return {step, there, dot(this->gradient(), along)};
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
    const Tensor next = this->gradient();
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
