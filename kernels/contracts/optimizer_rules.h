// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>

#include "kernels/contracts/optimizer.h"
#include "kernels/half.h"

// The update rules of kernels/contracts/optimizer.h, shared by all devices. A is the weights' type (float or double). A rule is
// constructed from its arguments, prepared once per launch and thread (P: the type for powers of the betas), and then
// called with a weight, its states (those past kStates are unused) and its gradient.

namespace weft::kernels {

/// The device scalars of one step; `scale` has the sign of the direction.
template <class A>
struct OptimizerStep {
  A lr, count, scale;
  bool skipped;

  WEFT_HD static OptimizerStep read(const A* scalars, bool maximize) {
    const A scale = scalars[2];
    // x - x is 0 for finite numbers only.
    return {scalars[0], scalars[1], maximize ? -scale : scale, scale == A(0) || !(scale - scale == A(0))};
  }
};

/// The defaults of most rules.
struct OptimizerRule {
  static constexpr int kStates = 0;
  static constexpr bool kWritesWeights = true;
  static constexpr bool kScalesGradient = true;  ///< false: the input is a step, not a gradient
};

/// The trust ratio of a parameter: `ratio` |w| / (|u| + decay |w| + eps), at most `most`; 1 if w or u is 0.
template <class A>
WEFT_HD A trust_ratio(A w_squares, A u_squares, A ratio, A decay, A eps, A most) {
  const A w = std::sqrt(w_squares), u = std::sqrt(u_squares);
  const A trust = w > A(0) && u > A(0) ? ratio * w / (u + decay * w + eps) : A(1);
  return trust < most ? trust : most;
}

template <class A>
struct PlainSgdRule : OptimizerRule {
  A weight_decay;
  explicit PlainSgdRule(const SgdArguments& a) : weight_decay(static_cast<A>(a.weight_decay)) {}

  template <class P>
  WEFT_HD void prepare(const OptimizerStep<A>&) {}
  WEFT_HD void update(const OptimizerStep<A>& s, A& w, A&, A&, A&, A g) const { w -= s.lr * (g + weight_decay * w); }
};

template <class A>
struct SgdRule : OptimizerRule {
  static constexpr int kStates = 1;
  A momentum, keep, weight_decay;  // keep = 1 - dampening
  bool nesterov, is_first = false;
  A trust = A(1);  // 1, or that of LARS
  explicit SgdRule(const SgdArguments& a)
      : momentum(static_cast<A>(a.momentum)),
        keep(static_cast<A>(1 - a.dampening)),
        weight_decay(static_cast<A>(a.weight_decay)),
        nesterov(a.nesterov) {}

  template <class P>
  WEFT_HD void prepare(const OptimizerStep<A>& s) {
    is_first = s.count == A(1);
  }
  WEFT_HD void update(const OptimizerStep<A>& s, A& w, A& velocity, A&, A&, A g) const {
    const A d = trust * (g + weight_decay * w);
    velocity = is_first ? d : momentum * velocity + keep * d;
    w -= s.lr * (nesterov ? d + momentum * velocity : velocity);
  }
};

template <class A, bool kAmsgrad = false>
struct AdamRule : OptimizerRule {
  static constexpr int kStates = kAmsgrad ? 3 : 2;
  A beta1, beta2, keep1, keep2, eps, weight_decay;  // keep = 1 - beta
  double log_beta1, log_beta2;                      // for 1 - beta^step = -expm1(step log(beta)) without cancellation
  bool decoupled;
  A rate = A(0), correction = A(0), shrink = A(1);  // lr / (1 - beta1^step), 1 / sqrt(1 - beta2^step), 1 - lr decay
  explicit AdamRule(const AdamArguments& a)
      : beta1(static_cast<A>(a.beta1)),
        beta2(static_cast<A>(a.beta2)),
        keep1(static_cast<A>(1 - a.beta1)),
        keep2(static_cast<A>(1 - a.beta2)),
        eps(static_cast<A>(a.eps)),
        weight_decay(static_cast<A>(a.weight_decay)),
        log_beta1(std::log(a.beta1)),
        log_beta2(std::log(a.beta2)),
        decoupled(a.decoupled) {}

  template <class P>
  WEFT_HD void prepare(const OptimizerStep<A>& s) {
    rate = static_cast<A>(P(s.lr) / -std::expm1(P(s.count) * P(log_beta1)));
    correction = static_cast<A>(P(1) / std::sqrt(-std::expm1(P(s.count) * P(log_beta2))));
    if (!decoupled) return;
    shrink = A(1) - s.lr * weight_decay;
    weight_decay = A(0);
  }
  WEFT_HD void update(const OptimizerStep<A>&, A& w, A& m, A& v, A& largest, A g) const {
    const A d = g + weight_decay * w;
    m = beta1 * m + keep1 * d;
    v = beta2 * v + keep2 * d * d;
    A square = v;
    if (kAmsgrad) square = largest = largest > v ? largest : v;
    w = w * shrink - rate * m / (std::sqrt(square) * correction + eps);
  }
};

/// Adam's step, weight decay added to it, for lamb_step.
template <class A>
struct LambDirectionRule : OptimizerRule {
  static constexpr int kStates = 3;
  static constexpr bool kWritesWeights = false;
  AdamRule<A> adam;
  A weight_decay;
  explicit LambDirectionRule(const LambArguments& a)
      : adam(AdamArguments{.beta1 = a.beta1, .beta2 = a.beta2, .eps = a.eps}),
        weight_decay(static_cast<A>(a.weight_decay)) {}

  template <class P>
  WEFT_HD void prepare(OptimizerStep<A> s) {
    s.lr = A(1);
    adam.template prepare<P>(s);
  }
  WEFT_HD void trust_in(const OptimizerStep<A>&, A, A) {}
  WEFT_HD void update(const OptimizerStep<A>& s, A& w, A& m, A& v, A& u, A g) const {
    A moved = A(0);
    adam.update(s, moved, m, v, moved, g);
    u = weight_decay * w - moved;
  }
};

template <class A>
struct LambRule : OptimizerRule {
  static constexpr bool kScalesGradient = false;
  A most, rate = A(0);
  explicit LambRule(const LambArguments& a) : most(static_cast<A>(a.clip_trust ? 1 : INFINITY)) {}

  template <class P>
  WEFT_HD void prepare(const OptimizerStep<A>& s) {
    rate = s.lr;
  }
  WEFT_HD void trust_in(const OptimizerStep<A>& s, A w_squares, A u_squares) {
    rate = s.lr * trust_ratio(w_squares, u_squares, A(1), A(0), A(0), most);
  }
  WEFT_HD void update(const OptimizerStep<A>&, A& w, A&, A&, A&, A u) const { w -= rate * u; }
};

template <class A>
struct LarsRule : SgdRule<A> {
  A ratio, eps, most;
  explicit LarsRule(const LarsArguments& a)
      : SgdRule<A>(SgdArguments{a.momentum, a.dampening, a.weight_decay, a.nesterov, a.maximize}),
        ratio(static_cast<A>(a.trust)),
        eps(static_cast<A>(a.eps)),
        most(static_cast<A>(INFINITY)) {}

  WEFT_HD void trust_in(const OptimizerStep<A>& s, A w_squares, A g_squares) {
    this->trust = trust_ratio(w_squares, s.scale * s.scale * g_squares, ratio, this->weight_decay, eps, most);
  }
};

template <class A>
struct AdadeltaRule : OptimizerRule {
  static constexpr int kStates = 2;
  A rho, keep, eps, weight_decay;  // keep = 1 - rho
  explicit AdadeltaRule(const AdadeltaArguments& a)
      : rho(static_cast<A>(a.rho)),
        keep(static_cast<A>(1 - a.rho)),
        eps(static_cast<A>(a.eps)),
        weight_decay(static_cast<A>(a.weight_decay)) {}

  template <class P>
  WEFT_HD void prepare(const OptimizerStep<A>&) {}
  WEFT_HD void update(const OptimizerStep<A>& s, A& w, A& square, A& delta, A&, A g) const {
    const A d = g + weight_decay * w;
    square = rho * square + keep * d * d;
    const A move = std::sqrt(delta + eps) / std::sqrt(square + eps) * d;
    delta = rho * delta + keep * move * move;
    w -= s.lr * move;
  }
};

/// The states are the average square, then, if present, momentum and the average gradient.
template <class A, bool kMomentum, bool kCentred>
struct RmspropRule : OptimizerRule {
  static constexpr int kStates = 1 + kMomentum + kCentred;
  A alpha, keep, eps, weight_decay, momentum;  // keep = 1 - alpha
  explicit RmspropRule(const RmspropArguments& a)
      : alpha(static_cast<A>(a.alpha)),
        keep(static_cast<A>(1 - a.alpha)),
        eps(static_cast<A>(a.eps)),
        weight_decay(static_cast<A>(a.weight_decay)),
        momentum(static_cast<A>(a.momentum)) {}

  template <class P>
  WEFT_HD void prepare(const OptimizerStep<A>&) {}
  WEFT_HD void update(const OptimizerStep<A>& s, A& w, A& square, A& second, A& third, A g) const {
    const A d = g + weight_decay * w;
    square = alpha * square + keep * d * d;
    A variance = square;
    if (kCentred) {
      A& mean = kMomentum ? third : second;
      mean = alpha * mean + keep * d;
      variance = square - mean * mean;
      variance = variance > A(0) ? variance : A(0);  // below 0 by rounding
    }
    A move = d / (std::sqrt(variance) + eps);
    if (kMomentum) move = second = momentum * second + move;
    w -= s.lr * move;
  }
};

template <class A>
struct AdagradRule : OptimizerRule {
  static constexpr int kStates = 1;
  A lr_decay, eps, weight_decay, rate = A(0);
  explicit AdagradRule(const AdagradArguments& a)
      : lr_decay(static_cast<A>(a.lr_decay)),
        eps(static_cast<A>(a.eps)),
        weight_decay(static_cast<A>(a.weight_decay)) {}

  template <class P>
  WEFT_HD void prepare(const OptimizerStep<A>& s) {
    rate = s.lr / (A(1) + (s.count - A(1)) * lr_decay);
  }
  WEFT_HD void update(const OptimizerStep<A>&, A& w, A& sum, A&, A&, A g) const {
    const A d = g + weight_decay * w;
    sum += d * d;
    w -= rate * d / (std::sqrt(sum) + eps);
  }
};

template <class A>
struct LionRule : OptimizerRule {
  static constexpr int kStates = 1;
  A beta1, beta2, keep1, keep2, weight_decay;  // keep = 1 - beta
  explicit LionRule(const LionArguments& a)
      : beta1(static_cast<A>(a.beta1)),
        beta2(static_cast<A>(a.beta2)),
        keep1(static_cast<A>(1 - a.beta1)),
        keep2(static_cast<A>(1 - a.beta2)),
        weight_decay(static_cast<A>(a.weight_decay)) {}

  template <class P>
  WEFT_HD void prepare(const OptimizerStep<A>&) {}
  WEFT_HD void update(const OptimizerStep<A>& s, A& w, A& m, A&, A&, A g) const {
    const A along = beta1 * m + keep1 * g;
    const A sign = along > A(0) ? A(1) : along < A(0) ? A(-1) : along;  // NaN stays NaN
    w -= s.lr * (sign + weight_decay * w);
    m = beta2 * m + keep2 * g;
  }
};

}  // namespace weft::kernels
