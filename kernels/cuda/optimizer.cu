// SPDX-License-Identifier: Apache-2.0
#include "kernels/optimizer.h"

#include "kernels/cuda/convert.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/vec.cuh"

// One launch over a flat range. Grid-stride, 256 threads a block, no barrier; a thread owns 4 neighbours (2 in f64), or
// one where a pointer is not aligned for that. The step's scalars are read from device memory by every thread.
// Bytes per element (f32 weights and gradient, + 2 with a bf16 copy): SGD 12, with momentum 20; Adam and Adadelta 28;
// clipping 8. Flops: 4 to 15. 90% of the bandwidth from a million elements on.

namespace weft::kernels::WEFT_DEVICE {

namespace {

constexpr int kThreads = 256;

/// The device scalars of one step.
template <class A>
struct Step {
  A lr, step, scale;
  bool skipped;
};

template <class A>
__device__ Step<A> read_step(const A* scalars, bool maximize) {
  Step<A> s{scalars[0], scalars[1], scalars[2], false};
  s.skipped = s.scale == A(0) || !(s.scale - s.scale == A(0));
  if (maximize) s.scale = -s.scale;
  return s;
}

template <class A>
struct Sgd {
  A momentum, keep, weight_decay;  // keep = 1 - dampening
  bool nesterov;
  static constexpr int kStates = 1;

  __device__ void prepare(const Step<A>&) {}
  __device__ void update(const Step<A>& s, A& w, A& velocity, A&, A g, bool has_velocity) const {
    A d = g + weight_decay * w;
    if (has_velocity) {
      velocity = s.step == A(1) ? d : momentum * velocity + keep * d;
      d = nesterov ? d + momentum * velocity : velocity;
    }
    w -= s.lr * d;
  }
};

template <class A>
struct Adam {
  A beta1, beta2, keep1, keep2, eps, weight_decay;  // keep = 1 - beta, in f64 on the host
  A log_beta1, log_beta2;                           // for 1 - beta^step = -expm1(step log(beta)) without cancellation
  bool decoupled;
  A step_size, root2;  // lr / (1 - beta1^step), sqrt(1 - beta2^step)
  static constexpr int kStates = 2;

  __device__ void prepare(const Step<A>& s) {
    step_size = s.lr / -expm1(s.step * log_beta1);
    root2 = sqrt(-expm1(s.step * log_beta2));
  }
  __device__ void update(const Step<A>& s, A& w, A& m, A& v, A g, bool) const {
    if (decoupled)
      w -= s.lr * weight_decay * w;
    else
      g += weight_decay * w;
    m = beta1 * m + keep1 * g;
    v = beta2 * v + keep2 * g * g;
    w -= step_size * m / (sqrt(v) / root2 + eps);
  }
};

template <class A>
struct Adadelta {
  A rho, keep, eps, weight_decay;  // keep = 1 - rho
  static constexpr int kStates = 2;

  __device__ void prepare(const Step<A>&) {}
  __device__ void update(const Step<A>& s, A& w, A& square, A& delta, A g, bool) const {
    g += weight_decay * w;
    square = rho * square + keep * g * g;
    const A d = sqrt(delta + eps) / sqrt(square + eps) * g;
    delta = rho * delta + keep * d * d;
    w -= s.lr * d;
  }
};

template <int V, class Rule, class A, class G>
__global__ void step_kernel(A* w, A* state1, A* state2, bf16* copy, const G* g, const A* scalars, Rule rule, int64_t n,
                            const bool maximize) {
  const Step<A> step = read_step(scalars, maximize);
  if (step.skipped) return;
  rule.prepare(step);
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x * V;
  for (int64_t i = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * V; i < n; i += stride) {
    const int count = n - i < V ? static_cast<int>(n - i) : V;
    if (count == V) {
      Vec<A, V> w_unit = Vec<A, V>::load(w + i), one = w_unit, two = w_unit;
      const Vec<G, V> g_unit = Vec<G, V>::load(g + i);
      if (state1 != nullptr) one = Vec<A, V>::load(state1 + i);
      if (Rule::kStates == 2) two = Vec<A, V>::load(state2 + i);
      for (int k = 0; k < V; ++k)
        rule.update(step, w_unit[k], one[k], two[k], from<A>(g_unit[k]) * step.scale, state1 != nullptr);
      w_unit.store(w + i);
      if (state1 != nullptr) one.store(state1 + i);
      if (Rule::kStates == 2) two.store(state2 + i);
      if (copy != nullptr) {
        Vec<bf16, V> copy_unit;
        for (int k = 0; k < V; ++k) copy_unit[k] = to<bf16>(w_unit[k]);
        copy_unit.store(copy + i);
      }
    } else {
      for (int k = 0; k < count; ++k) {
        A weight = w[i + k], one = state1 != nullptr ? state1[i + k] : A(0);
        A two = Rule::kStates == 2 ? state2[i + k] : A(0);
        rule.update(step, weight, one, two, from<A>(g[i + k]) * step.scale, state1 != nullptr);
        w[i + k] = weight;
        if (state1 != nullptr) state1[i + k] = one;
        if (Rule::kStates == 2) state2[i + k] = two;
        if (copy != nullptr) copy[i + k] = to<bf16>(weight);
      }
    }
  }
}

template <int V, class T>
__global__ void clip_kernel(T* g, const Accumulate<T>* norm, const Accumulate<T> max_norm, int64_t n) {
  using A = Accumulate<T>;
  const A factor = max_norm / (*norm + A(1e-6));
  if (factor >= A(1)) return;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x * V;
  for (int64_t i = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * V; i < n; i += stride) {
    if (n - i >= V) {
      Vec<T, V> unit = Vec<T, V>::load(g + i);
      for (int k = 0; k < V; ++k) unit[k] = to<T>(from<A>(unit[k]) * factor);
      unit.store(g + i);
    } else {
      for (int64_t k = i; k < n; ++k) g[k] = to<T>(from<A>(g[k]) * factor);
    }
  }
}

bool aligned(const View& view, int64_t bytes) {
  return reinterpret_cast<uintptr_t>(view.data) % static_cast<uintptr_t>(bytes) == 0;
}

template <class Rule, class A, class G>
void step(const Queue& queue, const char* name, const View& w, const View& state1, const View& state2, const View& copy,
          const View& g, const View& scalars, const Rule& rule, bool maximize) {
  constexpr int V = 16 / sizeof(A);
  const int64_t n = w.numel();
  const auto go = [&](auto kernel, int v) {
    launch(queue, name, dim3(blocks_for(n, kThreads * v)), dim3(kThreads), 0, kernel, w.as<A>(),
           state1 ? state1.as<A>() : nullptr, state2 ? state2.as<A>() : nullptr, copy ? copy.as<bf16>() : nullptr,
           static_cast<const G*>(g.data), static_cast<const A*>(scalars.as<A>()), rule, n, maximize);
  };
  if (aligned(w, 16) && aligned(state1, 16) && aligned(state2, 16) && aligned(copy, 2 * V) && aligned(g, sizeof(G) * V))
    go(&step_kernel<V, Rule, A, G>, V);
  else
    go(&step_kernel<1, Rule, A, G>, 1);
}

/// Picks the types of weights and gradient; `rule.operator()<A>()` makes the functor.
template <class MakeRule>
void dispatch(const Queue& queue, const char* name, const View& w, const View& state1, const View& state2,
              const View& copy, const View& g, const View& scalars, bool maximize, MakeRule&& make_rule) {
  WEFT_CHECK(w.rank == 1 && w.is_contiguous() && g.is_contiguous() && g.numel() == w.numel(), name,
             ": expected flat weights and gradient of one length, got ", w, " and ", g);
  if (w.dtype == DType::f64) {
    WEFT_CHECK(g.dtype == DType::f64, name, ": expected an f64 gradient for f64 weights, got ", g);
    auto rule = make_rule.template operator()<double>();
    return step<decltype(rule), double, double>(queue, name, w, state1, state2, copy, g, scalars, rule, maximize);
  }
  auto rule = make_rule.template operator()<float>();
  with_dtype<float, bf16>(g.dtype, name, [&]<class G>() {
    step<decltype(rule), float, G>(queue, name, w, state1, state2, copy, g, scalars, rule, maximize);
  });
}

}  // namespace

void sgd_step(const Queue& queue, const View& w, const View& velocity, const View& compute_copy, const View& g,
              const View& scalars, SgdArguments arguments) {
  dispatch(queue, "sgd_step", w, velocity, View::none(), compute_copy, g, scalars, arguments.maximize, [&]<class A>() {
    return Sgd<A>{static_cast<A>(arguments.momentum), static_cast<A>(1 - arguments.dampening),
                  static_cast<A>(arguments.weight_decay), arguments.nesterov};
  });
}

void adam_step(const Queue& queue, const View& w, const View& m, const View& v, const View& compute_copy, const View& g,
               const View& scalars, AdamArguments arguments) {
  dispatch(queue, "adam_step", w, m, v, compute_copy, g, scalars, arguments.maximize, [&]<class A>() {
    return Adam<A>{static_cast<A>(arguments.beta1),
                   static_cast<A>(arguments.beta2),
                   static_cast<A>(1 - arguments.beta1),
                   static_cast<A>(1 - arguments.beta2),
                   static_cast<A>(arguments.eps),
                   static_cast<A>(arguments.weight_decay),
                   static_cast<A>(std::log(arguments.beta1)),
                   static_cast<A>(std::log(arguments.beta2)),
                   arguments.decoupled,
                   A(0),
                   A(0)};
  });
}

void adadelta_step(const Queue& queue, const View& w, const View& square_average, const View& delta_average,
                   const View& compute_copy, const View& g, const View& scalars, AdadeltaArguments arguments) {
  dispatch(queue, "adadelta_step", w, square_average, delta_average, compute_copy, g, scalars, arguments.maximize,
           [&]<class A>() {
             return Adadelta<A>{static_cast<A>(arguments.rho), static_cast<A>(1 - arguments.rho),
                                static_cast<A>(arguments.eps), static_cast<A>(arguments.weight_decay)};
           });
}

void clip_gradient(const Queue& queue, const View& g, const View& norm, double max_norm) {
  WEFT_CHECK(g.is_contiguous(), "clip_gradient: expected a contiguous gradient, got ", g);
  const int64_t n = g.numel();
  with_dtype<float, bf16, double>(g.dtype, "clip_gradient", [&]<class T>() {
    using A = Accumulate<T>;
    constexpr int V = 16 / sizeof(T);
    const auto go = [&](auto kernel, int v) {
      launch(queue, "clip_gradient", dim3(blocks_for(n, kThreads * v)), dim3(kThreads), 0, kernel, g.as<T>(),
             static_cast<const A*>(norm.as<A>()), static_cast<A>(max_norm), n);
    };
    if (aligned(g, 16))
      go(&clip_kernel<V, T>, V);
    else
      go(&clip_kernel<1, T>, 1);
  });
}

}  // namespace weft::kernels::WEFT_DEVICE
