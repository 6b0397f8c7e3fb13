// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/optimizer.h"

#include "kernels/contracts/optimizer_rules.h"
#include "kernels/cuda/convert.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/reduce.cuh"
#include "kernels/cuda/vec.cuh"

// One launch over a flat range: grid-stride, 256 threads per block, no barrier. A thread owns 4 neighbours (2 in f64),
// or one if a pointer is not aligned for that. With chunks (LARS, LAMB) a block owns a chunk of a parameter. Every
// thread reads the step's scalars from device memory. Bytes per element (f32 weights and gradient, + 2 with a bf16
// copy): 12, and 8 per state (lamb_direction: 28); parameter_squares 4, clipping 8. Flops: 4 to 20. 90% of the
// bandwidth from a million elements on.

namespace weft::kernels::cuda {

namespace {

constexpr int kThreads = 256;

/// States are null from the rule's kStates on.
template <class A, class G>
struct Pointers {
  A *w, *one, *two, *three;
  bf16* copy;
  const G* g;
};

/// Updates the elements of [i, end) that this thread owns: V from i, then V from i + stride, …
template <int V, class Rule, class A, class G>
__device__ void update_run(const Pointers<A, G>& t, const OptimizerStep<A>& step, const Rule& rule, int64_t i,
                           int64_t end, int64_t stride) {
  const A factor = Rule::kScalesGradient ? step.scale : A(1);
  for (; i < end; i += stride) {
    const int count = end - i < V ? static_cast<int>(end - i) : V;
    if (count == V) {
      Vec<A, V> w = Vec<A, V>::load(t.w + i), one = w, two = w, three = w;
      const Vec<G, V> g = Vec<G, V>::load(t.g + i);
      if (Rule::kStates > 0) one = Vec<A, V>::load(t.one + i);
      if (Rule::kStates > 1) two = Vec<A, V>::load(t.two + i);
      if (Rule::kStates > 2) three = Vec<A, V>::load(t.three + i);
      for (int k = 0; k < V; ++k) rule.update(step, w[k], one[k], two[k], three[k], from<A>(g[k]) * factor);
      if (Rule::kWritesWeights) w.store(t.w + i);
      if (Rule::kStates > 0) one.store(t.one + i);
      if (Rule::kStates > 1) two.store(t.two + i);
      if (Rule::kStates > 2) three.store(t.three + i);
      if (t.copy != nullptr) {
        Vec<bf16, V> copy;
        for (int k = 0; k < V; ++k) copy[k] = to<bf16>(w[k]);
        copy.store(t.copy + i);
      }
    } else {
      for (int k = 0; k < count; ++k) {
        A w = t.w[i + k], one = A(0), two = A(0), three = A(0);
        if (Rule::kStates > 0) one = t.one[i + k];
        if (Rule::kStates > 1) two = t.two[i + k];
        if (Rule::kStates > 2) three = t.three[i + k];
        rule.update(step, w, one, two, three, from<A>(t.g[i + k]) * factor);
        if (Rule::kWritesWeights) t.w[i + k] = w;
        if (Rule::kStates > 0) t.one[i + k] = one;
        if (Rule::kStates > 1) t.two[i + k] = two;
        if (Rule::kStates > 2) t.three[i + k] = three;
        if (t.copy != nullptr) t.copy[i + k] = to<bf16>(w);
      }
    }
  }
}

template <int V, class Rule, class A, class G>
__global__ void step_kernel(Pointers<A, G> t, const A* scalars, Rule rule, int64_t n, const bool maximize) {
  const auto step = OptimizerStep<A>::read(scalars, maximize);
  if (step.skipped) return;
  rule.template prepare<A>(step);
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x * V;
  update_run<V>(t, step, rule, (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * V, n, stride);
}

/// One block per chunk; `w_squares`: the sums of each parameter, or null.
template <int V, class Rule, class A, class G>
__global__ void chunk_kernel(Pointers<A, G> t, const A* scalars, const int64_t* chunks, const A* w_squares,
                             const A* u_squares, Rule rule, const bool maximize) {
  const auto step = OptimizerStep<A>::read(scalars, maximize);
  if (step.skipped) return;
  rule.template prepare<A>(step);
  const int64_t* const chunk = chunks + static_cast<int64_t>(blockIdx.x) * 3;
  if (w_squares != nullptr) rule.trust_in(step, w_squares[chunk[2]], u_squares[chunk[2]]);
  update_run<V>(t, step, rule, chunk[0] + static_cast<int64_t>(threadIdx.x) * V, chunk[1],
                static_cast<int64_t>(blockDim.x) * V);
}

template <class T, class A>
__global__ void chunk_squares_kernel(A* partial, const T* x, const int64_t* chunks) {
  const int64_t* const chunk = chunks + static_cast<int64_t>(blockIdx.x) * 3;
  A sum = A(0);
  for (int64_t i = chunk[0] + threadIdx.x; i < chunk[1]; i += blockDim.x) {
    const A value = from<A>(x[i]);
    sum += value * value;
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

/// One block per parameter.
template <class A>
__global__ void join_squares_kernel(A* squares, const A* partial, const int64_t* firsts) {
  A sum = A(0);
  for (int64_t c = firsts[blockIdx.x] + threadIdx.x; c < firsts[blockIdx.x + 1]; c += blockDim.x) sum += partial[c];
  sum = block_sum(sum);
  if (threadIdx.x == 0) squares[blockIdx.x] = sum;
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

/// The tensors of a step. States are none from the rule's kStates on.
struct Tensors {
  const View &w, &one, &two, &three, &compute_copy, &g, &scalars;

  template <class A, class G>
  Pointers<A, G> pointers() const {
    const auto state = [](const View& view) { return view ? view.as<A>() : nullptr; };
    return {w.as<A>(), state(one), state(two), state(three), compute_copy ? compute_copy.as<bf16>() : nullptr,
            g.as<G>()};
  }
  template <class A, class G>
  bool aligned_for(int v) const {
    const int bytes = v * static_cast<int>(sizeof(A));
    return aligned(w, bytes) && aligned(one, bytes) && aligned(two, bytes) && aligned(three, bytes) &&
           aligned(compute_copy, 2 * v) && aligned(g, v * static_cast<int>(sizeof(G)));
  }
};

/// Dispatches on the types of weights (A) and gradient (G): calls `body.operator()<A, G>()`.
template <class Body>
void with_types(const char* name, const View& w, const View& g, const Body& body) {
  WEFT_CHECK(w.rank == 1 && w.is_contiguous() && g.is_contiguous() && g.numel() == w.numel(), name,
             ": expected flat weights and gradient of one length, got ", w, " and ", g);
  if (w.dtype == DType::f64) {
    WEFT_CHECK(g.dtype == DType::f64, name, ": expected an f64 gradient for f64 weights, got ", g);
    return body.template operator()<double, double>();
  }
  with_dtype<float, bf16>(g.dtype, name, [&]<class G>() { body.template operator()<float, G>(); });
}

/// One step over the whole range; `make.operator()<A>()` returns the rule.
template <class Make>
void step(const Queue& queue, const char* name, const Tensors& t, bool maximize, const Make& make) {
  with_types(name, t.w, t.g, [&]<class A, class G>() {
    const auto rule = make.template operator()<A>();
    using Rule = std::decay_t<decltype(rule)>;
    constexpr int V = 16 / sizeof(A);
    const int64_t n = t.w.numel();
    const auto go = [&](auto kernel, int v) {
      launch(queue, name, dim3(blocks_for(n, kThreads * v)), dim3(kThreads), 0, kernel, t.template pointers<A, G>(),
             static_cast<const A*>(t.scalars.as<A>()), rule, n, maximize);
    };
    if (t.template aligned_for<A, G>(V))
      go(&step_kernel<V, Rule, A, G>, V);
    else
      go(&step_kernel<1, Rule, A, G>, 1);
  });
}

/// One step of all chunks.
template <class Make>
void step_by_parameter(const Queue& queue, const char* name, const Tensors& t, bool maximize, const View& chunks,
                       const View& w_squares, const View& u_squares, const Make& make) {
  if (chunks.sizes[0] == 0) return;
  with_types(name, t.w, t.g, [&]<class A, class G>() {
    const auto rule = make.template operator()<A>();
    using Rule = std::decay_t<decltype(rule)>;
    constexpr int V = 16 / sizeof(A);
    const auto squares = [](const View& view) -> const A* { return view ? view.as<A>() : nullptr; };
    const auto go = [&](auto kernel) {
      launch(queue, name, dim3(static_cast<unsigned>(chunks.sizes[0])), dim3(kThreads), 0, kernel,
             t.template pointers<A, G>(), static_cast<const A*>(t.scalars.as<A>()),
             static_cast<const int64_t*>(chunks.as<int64_t>()), squares(w_squares), squares(u_squares), rule, maximize);
    };
    if (t.template aligned_for<A, G>(V))
      go(&chunk_kernel<V, Rule, A, G>);
    else
      go(&chunk_kernel<1, Rule, A, G>);
  });
}

}  // namespace

void sgd_step(const Queue& queue, const View& w, const View& velocity, const View& compute_copy, const View& g,
              const View& scalars, SgdArguments arguments) {
  const View none = View::none();
  const Tensors t{w, velocity, none, none, compute_copy, g, scalars};
  if (velocity)
    step(queue, "sgd_step", t, arguments.maximize, [&]<class A>() { return SgdRule<A>(arguments); });
  else
    step(queue, "sgd_step", t, arguments.maximize, [&]<class A>() { return PlainSgdRule<A>(arguments); });
}

void adam_step(const Queue& queue, const View& w, const View& m, const View& v, const View& largest,
               const View& compute_copy, const View& g, const View& scalars, AdamArguments arguments) {
  const Tensors t{w, m, v, largest, compute_copy, g, scalars};
  if (largest)
    step(queue, "adam_step", t, arguments.maximize, [&]<class A>() { return AdamRule<A, true>(arguments); });
  else
    step(queue, "adam_step", t, arguments.maximize, [&]<class A>() { return AdamRule<A>(arguments); });
}

void adadelta_step(const Queue& queue, const View& w, const View& square_average, const View& delta_average,
                   const View& compute_copy, const View& g, const View& scalars, AdadeltaArguments arguments) {
  const View none = View::none();
  step(queue, "adadelta_step", {w, square_average, delta_average, none, compute_copy, g, scalars}, arguments.maximize,
       [&]<class A>() { return AdadeltaRule<A>(arguments); });
}

void rmsprop_step(const Queue& queue, const View& w, const View& square_average, const View& velocity,
                  const View& gradient_average, const View& compute_copy, const View& g, const View& scalars,
                  RmspropArguments arguments) {
  const View none = View::none();
  const View &second = velocity ? velocity : gradient_average, &third = velocity ? gradient_average : none;
  const Tensors t{w, square_average, second, third, compute_copy, g, scalars};
  const auto run = [&]<bool kMomentum, bool kCentred>() {
    step(queue, "rmsprop_step", t, arguments.maximize,
         [&]<class A>() { return RmspropRule<A, kMomentum, kCentred>(arguments); });
  };
  if (velocity)
    gradient_average ? run.template operator()<true, true>() : run.template operator()<true, false>();
  else
    gradient_average ? run.template operator()<false, true>() : run.template operator()<false, false>();
}

void adagrad_step(const Queue& queue, const View& w, const View& sum, const View& compute_copy, const View& g,
                  const View& scalars, AdagradArguments arguments) {
  const View none = View::none();
  step(queue, "adagrad_step", {w, sum, none, none, compute_copy, g, scalars}, arguments.maximize,
       [&]<class A>() { return AdagradRule<A>(arguments); });
}

void lion_step(const Queue& queue, const View& w, const View& m, const View& compute_copy, const View& g,
               const View& scalars, LionArguments arguments) {
  const View none = View::none();
  step(queue, "lion_step", {w, m, none, none, compute_copy, g, scalars}, arguments.maximize,
       [&]<class A>() { return LionRule<A>(arguments); });
}

void parameter_squares(const Queue& queue, const View& squares, const View& partial, const View& x, const View& chunks,
                       const View& firsts) {
  with_dtype<float, double, bf16>(x.dtype, "parameter_squares", [&]<class T>() {
    using A = Accumulate<T>;
    if (chunks.sizes[0] > 0)
      launch(queue, "parameter_squares", dim3(static_cast<unsigned>(chunks.sizes[0])), dim3(kThreads), 0,
             &chunk_squares_kernel<T, A>, partial.as<A>(), static_cast<const T*>(x.as<T>()),
             static_cast<const int64_t*>(chunks.as<int64_t>()));
    launch(queue, "parameter_squares", dim3(static_cast<unsigned>(squares.sizes[0])), dim3(64), 0,
           &join_squares_kernel<A>, squares.as<A>(), static_cast<const A*>(partial.as<A>()),
           static_cast<const int64_t*>(firsts.as<int64_t>()));
  });
}

void lars_step(const Queue& queue, const View& w, const View& velocity, const View& compute_copy, const View& g,
               const View& scalars, const View& chunks, const View& w_squares, const View& g_squares,
               LarsArguments arguments) {
  const View none = View::none();
  step_by_parameter(queue, "lars_step", {w, velocity, none, none, compute_copy, g, scalars}, arguments.maximize, chunks,
                    w_squares, g_squares, [&]<class A>() { return LarsRule<A>(arguments); });
}

void lamb_direction(const Queue& queue, const View& u, const View& m, const View& v, const View& w, const View& g,
                    const View& scalars, const View& chunks, LambArguments arguments) {
  const View none = View::none();
  step_by_parameter(queue, "lamb_direction", {w, m, v, u, none, g, scalars}, arguments.maximize, chunks, none, none,
                    [&]<class A>() { return LambDirectionRule<A>(arguments); });
}

void lamb_step(const Queue& queue, const View& w, const View& compute_copy, const View& u, const View& scalars,
               const View& chunks, const View& w_squares, const View& u_squares, LambArguments arguments) {
  const View none = View::none();
  step_by_parameter(queue, "lamb_step", {w, none, none, none, compute_copy, u, scalars}, /*maximize=*/false, chunks,
                    w_squares, u_squares, [&]<class A>() { return LambRule<A>(arguments); });
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

namespace {

struct Average {
  template <class A>
  static __device__ void apply(A& mean, A& weight, A fresh) {
    mean += fresh * (weight - mean);
  }
};

struct Exchange {
  template <class A>
  static __device__ void apply(A& a, A& b, A) {
    const A kept = a;
    a = b;
    b = kept;
  }
};

// One launch over a flat range. Grid-stride, 256 threads per block, no barrier; a thread owns 16 bytes of neighbours,
// or one element if a pointer is not aligned for that. Bytes per element in f32: ema_step 12, exchange 16; 90% of the
// bandwidth from a million elements on.
// `count`: the updates so far, or none; it raises `fresh` to 9 / (10 + count).
template <int V, class Rule, bool kWritesSecond, class A>
__global__ void pair_kernel(A* a, A* b, const A* count, A fresh, int64_t n) {
  if (count != nullptr) {
    const A early = A(9) / (A(10) + *count);
    fresh = fresh > early ? fresh : early;
  }
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x * V;
  for (int64_t i = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * V; i < n; i += stride) {
    if (n - i >= V) {
      Vec<A, V> one = Vec<A, V>::load(a + i), two = Vec<A, V>::load(b + i);
      for (int k = 0; k < V; ++k) Rule::apply(one[k], two[k], fresh);
      one.store(a + i);
      if (kWritesSecond) two.store(b + i);
    } else {
      for (int64_t k = i; k < n; ++k) {
        A one = a[k], two = b[k];
        Rule::apply(one, two, fresh);
        a[k] = one;
        if (kWritesSecond) b[k] = two;
      }
    }
  }
}

template <class Rule, bool kWritesSecond>
void step_pair(const Queue& queue, const char* name, const View& a, const View& b, const View& count, double fresh) {
  WEFT_CHECK(a.rank == 1 && a.same_sizes(b) && a.is_contiguous() && b.is_contiguous() && a.dtype == b.dtype, name,
             ": expected flat ranges of one size and dtype, got ", a, " and ", b);
  const int64_t n = a.numel();
  with_dtype<float, double>(a.dtype, name, [&]<class A>() {
    constexpr int V = 16 / sizeof(A);
    const auto go = [&](auto kernel, int v) {
      launch(queue, name, dim3(blocks_for(n, kThreads * v)), dim3(kThreads), 0, kernel, a.as<A>(), b.as<A>(),
             static_cast<const A*>(count ? count.as<A>() : nullptr), static_cast<A>(fresh), n);
    };
    if (aligned(a, 16) && aligned(b, 16))
      go(&pair_kernel<V, Rule, kWritesSecond, A>, V);
    else
      go(&pair_kernel<1, Rule, kWritesSecond, A>, 1);
  });
}

}  // namespace

void ema_step(const Queue& queue, const View& average, const View& w, const View& count, EmaArguments arguments) {
  step_pair<Average, false>(queue, "ema_step", average, w, arguments.warmup ? count : View::none(),
                            1 - arguments.decay);
}

void exchange(const Queue& queue, const View& a, const View& b) {
  step_pair<Exchange, true>(queue, "exchange", a, b, View::none(), 0);
}

}  // namespace weft::kernels::cuda
