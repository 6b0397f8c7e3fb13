// SPDX-License-Identifier: Apache-2.0
#include "kernels/optimizer.h"

#include <cmath>

#include "kernels/cpu/parallel.h"

namespace weft::kernels::cpu {
namespace {

/// The device scalars that every rule reads.
template <class S>
struct Step {
  S lr, step, scale;
  bool skipped() const { return scale == 0 || !std::isfinite(scale); }
};

template <class S>
Step<S> read_scalars(const View& scalars) {
  const S* values = scalars.as<S>();
  return {values[0], values[1], values[2]};
}

/// Calls rule(i, g) for each element, with g scaled (and negated to maximise), and lets it return the new weight.
template <class S, class G, class Rule>
void update_range(const View& w, const View& compute_copy, const View& g, const Step<S>& step, bool maximize,
                  const Rule& rule) {
  S* weight = w.as<S>();
  const G* gradient = g.as<G>();
  bf16* copy = compute_copy ? compute_copy.as<bf16>() : nullptr;
  const S factor = maximize ? -step.scale : step.scale;
  parallel_for(w.numel(), 4, [&](int64_t begin, int64_t end) {
    if (copy) {
      for (int64_t i = begin; i < end; ++i) {
        weight[i] = rule(i, weight[i], static_cast<S>(gradient[i]) * factor);
        copy[i] = static_cast<bf16>(static_cast<float>(weight[i]));
      }
    } else {
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) weight[i] = rule(i, weight[i], static_cast<S>(gradient[i]) * factor);
    }
  });
}

/// Calls body with S, the weights' type, and G, the gradients'.
template <class Body>
void with_types(const char* op, const View& w, const View& g, Body&& body) {
  WEFT_CHECK(w.rank == 1 && w.same_sizes(g) && w.is_contiguous() && g.is_contiguous(), op,
             ": expected flat ranges of one size, got w ", w, ", g ", g);
  with_dtype<float, double>(w.dtype, op, [&]<class S>() {
    if (g.dtype == w.dtype) return body.template operator()<S, S>();
    if constexpr (std::is_same_v<S, float>) {
      if (g.dtype == DType::bf16) return body.template operator()<float, bf16>();
    }
    fail(op, ": expected a gradient like the weights or bf16, got w ", w, ", g ", g);
  });
}

}  // namespace

void sgd_step(const Queue&, const View& w, const View& velocity, const View& compute_copy, const View& g,
              const View& scalars, SgdArguments arguments) {
  with_types("sgd_step", w, g, [&]<class S, class G>() {
    const Step<S> step = read_scalars<S>(scalars);
    if (step.skipped()) return;
    const S lr = step.lr, decay = static_cast<S>(arguments.weight_decay);
    if (!velocity) {
      update_range<S, G>(w, compute_copy, g, step, arguments.maximize,
                         [=](int64_t, S weight, S gradient) { return weight - lr * (gradient + decay * weight); });
      return;
    }
    S* v = velocity.as<S>();
    const bool first = step.step == 1;
    const S momentum = first ? S(0) : static_cast<S>(arguments.momentum);
    const S fresh = first ? S(1) : static_cast<S>(1 - arguments.dampening);
    const S ahead = arguments.nesterov ? static_cast<S>(arguments.momentum) : S(0),
            direct = arguments.nesterov ? S(1) : S(0);
    const S along = arguments.nesterov ? ahead : S(1);
    update_range<S, G>(w, compute_copy, g, step, arguments.maximize, [=](int64_t i, S weight, S gradient) {
      const S d = gradient + decay * weight;
      const S moved = (first ? S(0) : momentum * v[i]) + fresh * d;
      v[i] = moved;
      return weight - lr * (direct * d + along * moved);
    });
  });
}

void adam_step(const Queue&, const View& w, const View& m, const View& v, const View& compute_copy, const View& g,
               const View& scalars, AdamArguments arguments) {
  with_types("adam_step", w, g, [&]<class S, class G>() {
    const Step<S> step = read_scalars<S>(scalars);
    if (step.skipped()) return;
    const S beta1 = static_cast<S>(arguments.beta1), beta2 = static_cast<S>(arguments.beta2);
    const S keep1 = static_cast<S>(1 - arguments.beta1), keep2 = static_cast<S>(1 - arguments.beta2);
    const double count = static_cast<double>(step.step);
    const S rate = static_cast<S>(static_cast<double>(step.lr) / (1 - std::pow(arguments.beta1, count)));
    const S correction = static_cast<S>(1 / std::sqrt(1 - std::pow(arguments.beta2, count)));
    const S eps = static_cast<S>(arguments.eps);
    const S decay = arguments.decoupled ? S(0) : static_cast<S>(arguments.weight_decay);
    const S shrink = arguments.decoupled ? S(1) - step.lr * static_cast<S>(arguments.weight_decay) : S(1);
    S *first = m.as<S>(), *second = v.as<S>();
    update_range<S, G>(w, compute_copy, g, step, arguments.maximize, [=](int64_t i, S weight, S gradient) {
      const S d = gradient + decay * weight;
      const S mean = beta1 * first[i] + keep1 * d, square = beta2 * second[i] + keep2 * d * d;
      first[i] = mean;
      second[i] = square;
      return weight * shrink - rate * mean / (std::sqrt(square) * correction + eps);
    });
  });
}

void adadelta_step(const Queue&, const View& w, const View& square_average, const View& delta_average,
                   const View& compute_copy, const View& g, const View& scalars, AdadeltaArguments arguments) {
  with_types("adadelta_step", w, g, [&]<class S, class G>() {
    const Step<S> step = read_scalars<S>(scalars);
    if (step.skipped()) return;
    const S rho = static_cast<S>(arguments.rho), fresh = static_cast<S>(1 - arguments.rho);
    const S eps = static_cast<S>(arguments.eps), decay = static_cast<S>(arguments.weight_decay), lr = step.lr;
    S *squares = square_average.as<S>(), *deltas = delta_average.as<S>();
    update_range<S, G>(w, compute_copy, g, step, arguments.maximize, [=](int64_t i, S weight, S gradient) {
      const S d = gradient + decay * weight;
      const S square = rho * squares[i] + fresh * d * d;
      const S delta = std::sqrt(deltas[i] + eps) / std::sqrt(square + eps) * d;
      squares[i] = square;
      deltas[i] = rho * deltas[i] + fresh * delta * delta;
      return weight - lr * delta;
    });
  });
}

void clip_gradient(const Queue&, const View& g, const View& norm, double max_norm) {
  with_dtype<float, double, bf16>(g.dtype, "clip_gradient", [&]<class G>() {
    using S = Accumulate<G>;
    const S length = norm.as<S>()[0];
    const S factor = std::min(S(1), static_cast<S>(max_norm) / (length + S(1e-6)));
    if (factor == 1) return;
    G* gradient = g.as<G>();
    parallel_for(g.numel(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) gradient[i] = static_cast<G>(static_cast<S>(gradient[i]) * factor);
    });
  });
}

}  // namespace weft::kernels::cpu
