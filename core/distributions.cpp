// SPDX-License-Identifier: Apache-2.0
#include "core/distributions.h"

#include <cmath>
#include <numbers>

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/compare.h"
#include "core/ops/gather.h"
#include "core/ops/layers/losses.h"
#include "core/ops/layers/softmax.h"
#include "core/ops/random.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "kernels/error.h"

namespace weft::distributions {
namespace {

void check(const char* name, const Tensor& parameter) {
  WEFT_CHECK(parameter.defined() && is_floating(parameter.dtype()), name, ": expected floating parameters, got ",
             parameter);
}

void check(const char* name, const Tensor& a, const Tensor& b) {
  check(name, a);
  check(name, b);
  WEFT_CHECK(a.dtype() == b.dtype() && a.device() == b.device(), name,
             ": expected parameters of one dtype on one device, got ", a, " and ", b);
}

/// Whether a condition on parameters holds for all of their elements. On a GPU nothing waits for the answer: true.
template <class Condition>
bool holds(const Tensor& parameter, const Condition& condition) {
  const NoGrad no_grad;
  return parameter.device().kind != DeviceKind::cpu || all(condition()).item() != 0;
}

void check_numbers(const char* name, const char* what, const Tensor& x) {
  WEFT_CHECK(holds(x, [&] { return logical_not(isnan(x)); }), name, ": expected ", what,
             " that are numbers, got NaN in ", x);
}

/// The sizes that both parameters broadcast to.
Shape sizes_of(const Tensor& a, const Tensor& b) { return (a.detach() + b.detach()).sizes(); }

/// p log q of probabilities by their logarithms; 0, and no gradient, where p is 0.
Tensor weighted(const Tensor& log_p, const Tensor& log_q) {
  const Tensor p = exp(log_p);
  return p * masked_fill(log_q, eq(p.detach(), 0), 0);
}

/// The dtype in which numbers are drawn: bf16 and f16 have few numbers below 1.
DType drawn_dtype(const Tensor& like) { return like.dtype() == DType::f64 ? DType::f64 : DType::f32; }

}  // namespace

Normal::Normal(Tensor mean, Tensor std) : mean_(std::move(mean)), std_(std::move(std)) {
  check("Normal", mean_, std_);
  check_numbers("Normal", "means", mean_);
  WEFT_CHECK(holds(std_, [&] { return gt(std_, 0); }), "Normal: expected standard deviations above 0, got ",
             min(std_.detach()).item(), " in ", std_);
}
Tensor Normal::rsample() const {
  return mean_ + std_ * normal(sizes_of(mean_, std_), 0, 1, mean_.dtype(), mean_.device());
}
Tensor Normal::sample() const { return rsample().detach(); }
Tensor Normal::log_prob(const Tensor& x) const {
  return -0.5 * square((x - mean_) / std_) - log(std_) - 0.5 * std::log(2 * std::numbers::pi);
}
Tensor Normal::entropy() const {
  return (log(std_) + (0.5 + 0.5 * std::log(2 * std::numbers::pi))).expand(sizes_of(mean_, std_));
}

Uniform::Uniform(Tensor low, Tensor high) : low_(std::move(low)), high_(std::move(high)) {
  check("Uniform", low_, high_);
  WEFT_CHECK(holds(low_, [&] { return lt(low_, high_); }), "Uniform: expected low < high everywhere, got ", low_,
             " and ", high_);
}
Tensor Uniform::rsample() const {
  return low_ + (high_ - low_) * uniform(sizes_of(low_, high_), 0, 1, low_.dtype(), low_.device());
}
Tensor Uniform::sample() const { return rsample().detach(); }
Tensor Uniform::log_prob(const Tensor& x) const {
  const Tensor inside = logical_and(ge(x, low_), lt(x, high_));
  return where(inside, neg(log(high_ - low_)).expand(inside.sizes()), -INFINITY);
}
Tensor Uniform::entropy() const { return log(high_ - low_); }

Bernoulli::Bernoulli(Tensor logits) : logits_(std::move(logits)) {
  check("Bernoulli", logits_);
  check_numbers("Bernoulli", "logits", logits_);
}
Tensor Bernoulli::sample() const {
  const DType dtype = drawn_dtype(logits_);
  const Tensor p = sigmoid(logits_.detach().to(dtype));
  return lt(uniform(p.sizes(), 0, 1, dtype, p.device()), p).to(logits_.dtype());
}
// Written with |l|: a small result is no difference of large numbers.
Tensor Bernoulli::log_prob(const Tensor& x) const {
  const Tensor positive = gt(logits_, 0);
  return neg(softplus(where(positive, neg(logits_), logits_)) + (positive.to(logits_.dtype()) - x) * logits_);
}
Tensor Bernoulli::entropy() const {
  const Tensor size = where(gt(logits_, 0), logits_, neg(logits_));
  return softplus(neg(size)) + size * sigmoid(neg(size));
}

Categorical::Categorical(const Tensor& logits) {
  check("Categorical", logits);
  WEFT_CHECK(logits.dim() > 0, "Categorical: expected logits [..., classes], got ", logits);
  log_probabilities_ = log_softmax(logits, -1);
  WEFT_CHECK(
      holds(logits, [&] { return logical_not(isnan(log_probabilities_)); }),
      "Categorical: expected rows of logits with a finite largest one, got NaN, infinity, or -infinity alone in ",
      logits);
}
Tensor Categorical::sample() const { return multinomial(exp(log_probabilities_.detach()), 1).squeeze(-1); }
Tensor Categorical::log_prob(const Tensor& classes) const {
  const int rows = log_probabilities_.dim() - 1, extra = classes.defined() ? classes.dim() - rows : -1;
  bool fits = extra >= 0;
  for (int d = 0; fits && d < rows; ++d) fits = classes.size(extra + d) == log_probabilities_.size(d);
  WEFT_CHECK(fits, "Categorical: expected a class for each row of ", log_probabilities_, ", got ", classes);
  Shape sizes = classes.sizes();
  sizes.push_back(log_probabilities_.size(-1));
  return gather(log_probabilities_.expand(sizes), -1, classes.unsqueeze(-1)).squeeze(-1);
}
Tensor Categorical::entropy() const { return neg(sum(weighted(log_probabilities_, log_probabilities_), {-1})); }

Tensor kl_divergence(const Normal& p, const Normal& q) {
  return log(q.std() / p.std()) + (square(p.std()) + square(p.mean() - q.mean())) / (2 * square(q.std())) - 0.5;
}
Tensor kl_divergence(const Bernoulli& p, const Bernoulli& q) {
  const Tensor &a = p.logits(), &b = q.logits();
  return sigmoid(a) * (softplus(neg(b)) - softplus(neg(a))) + sigmoid(neg(a)) * (softplus(b) - softplus(a));
}
Tensor kl_divergence(const Categorical& p, const Categorical& q) {
  const Tensor& log_p = p.log_probabilities();
  return sum(weighted(log_p, log_p) - weighted(log_p, q.log_probabilities()), {-1});
}

}  // namespace weft::distributions

namespace weft {

Tensor gumbel_softmax(const Tensor& logits, GumbelSoftmaxOptions options) {
  distributions::check("gumbel_softmax", logits);
  WEFT_CHECK(options.tau > 0, "gumbel_softmax: expected a temperature above 0, got ", options.tau);
  const double least = 0x1p-24;  // a logarithm is taken
  const Tensor u = uniform(logits.sizes(), least, 1, distributions::drawn_dtype(logits), logits.device());
  const Tensor noise = neg(log(neg(log(u))));
  const Tensor soft = softmax((logits + noise.to(logits.dtype())) / options.tau, -1);
  if (!options.hard) return soft;
  const Tensor hard = one_hot(argmax(soft.detach(), -1), soft.size(-1), soft.dtype());
  return hard - soft.detach() + soft;
}

}  // namespace weft
