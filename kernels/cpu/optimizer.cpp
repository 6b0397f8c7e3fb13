// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/optimizer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/contracts/optimizer_rules.h"
#include "kernels/cpu/parallel.h"

namespace weft::kernels::cpu {
namespace {

constexpr int64_t kBlock = 1024;  // elements whose new weights are still in the cache when they are rounded

/// The tensors of a step. States are none from the rule's kStates on.
struct Tensors {
  const View &w, &one, &two, &three, &compute_copy, &g, &scalars;
};

/// Elements begin to before end. `rule` is prepared.
template <class S, class G, class Rule>
void update_run(const Tensors& t, const OptimizerStep<S>& step, const Rule& rule, int64_t begin, int64_t end) {
  const auto state = [](const View& view) { return view ? view.as<S>() : nullptr; };
  S *w = t.w.as<S>(), *one = state(t.one), *two = state(t.two), *three = state(t.three);
  const G* g = t.g.as<G>();
  bf16* copy = t.compute_copy ? t.compute_copy.as<bf16>() : nullptr;
  const S factor = Rule::kScalesGradient ? step.scale : S(1);
  for (; begin < end; begin += kBlock) {
    const int64_t stop = std::min(end, begin + kBlock);
#pragma omp simd
    for (int64_t i = begin; i < stop; ++i) {
      S weight = w[i], first = S(0), second = S(0), third = S(0);
      if constexpr (Rule::kStates > 0) first = one[i];
      if constexpr (Rule::kStates > 1) second = two[i];
      if constexpr (Rule::kStates > 2) third = three[i];
      rule.update(step, weight, first, second, third, static_cast<S>(g[i]) * factor);
      if constexpr (Rule::kWritesWeights) w[i] = weight;
      if constexpr (Rule::kStates > 0) one[i] = first;
      if constexpr (Rule::kStates > 1) two[i] = second;
      if constexpr (Rule::kStates > 2) three[i] = third;
    }
    if (copy)
      for (int64_t i = begin; i < stop; ++i) copy[i] = static_cast<bf16>(static_cast<float>(w[i]));
  }
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

/// One step of a rule over all elements; `make.operator()<S>()` makes the rule.
template <class Make>
void launch(const char* op, const Tensors& t, bool maximize, const Make& make) {
  with_types(op, t.w, t.g, [&]<class S, class G>() {
    const auto step = OptimizerStep<S>::read(t.scalars.as<S>(), maximize);
    if (step.skipped) return;
    auto rule = make.template operator()<S>();
    rule.template prepare<double>(step);
    parallel_for(t.w.numel(), 4, [&](int64_t begin, int64_t end) { update_run<S, G>(t, step, rule, begin, end); });
  });
}

/// As above, chunk by chunk, where a rule moves each parameter by its norms.
template <class Make>
void launch_by_parameter(const char* op, const Tensors& t, bool maximize, const View& chunks, const View& w_squares,
                         const View& u_squares, const Make& make) {
  with_types(op, t.w, t.g, [&]<class S, class G>() {
    const auto step = OptimizerStep<S>::read(t.scalars.as<S>(), maximize);
    if (step.skipped) return;
    auto prepared = make.template operator()<S>();
    prepared.template prepare<double>(step);
    const int64_t* chunk = chunks.as<int64_t>();
    parallel_for(chunks.sizes[0], kChunkElements, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        auto rule = prepared;
        const int64_t parameter = chunk[3 * c + 2];
        if (w_squares) rule.trust_in(step, w_squares.as<S>()[parameter], u_squares.as<S>()[parameter]);
        update_run<S, G>(t, step, rule, chunk[3 * c], chunk[3 * c + 1]);
      }
    });
  });
}

const View kNone = View::none();

}  // namespace

void sgd_step(const Queue&, const View& w, const View& velocity, const View& compute_copy, const View& g,
              const View& scalars, SgdArguments arguments) {
  const Tensors t{w, velocity, kNone, kNone, compute_copy, g, scalars};
  if (velocity)
    launch("sgd_step", t, arguments.maximize, [&]<class S>() { return SgdRule<S>(arguments); });
  else
    launch("sgd_step", t, arguments.maximize, [&]<class S>() { return PlainSgdRule<S>(arguments); });
}

void adam_step(const Queue&, const View& w, const View& m, const View& v, const View& largest, const View& compute_copy,
               const View& g, const View& scalars, AdamArguments arguments) {
  const Tensors t{w, m, v, largest, compute_copy, g, scalars};
  if (largest)
    launch("adam_step", t, arguments.maximize, [&]<class S>() { return AdamRule<S, true>(arguments); });
  else
    launch("adam_step", t, arguments.maximize, [&]<class S>() { return AdamRule<S>(arguments); });
}

void adadelta_step(const Queue&, const View& w, const View& square_average, const View& delta_average,
                   const View& compute_copy, const View& g, const View& scalars, AdadeltaArguments arguments) {
  launch("adadelta_step", {w, square_average, delta_average, kNone, compute_copy, g, scalars}, arguments.maximize,
         [&]<class S>() { return AdadeltaRule<S>(arguments); });
}

void rmsprop_step(const Queue&, const View& w, const View& square_average, const View& velocity,
                  const View& gradient_average, const View& compute_copy, const View& g, const View& scalars,
                  RmspropArguments arguments) {
  const View &second = velocity ? velocity : gradient_average, &third = velocity ? gradient_average : kNone;
  const Tensors t{w, square_average, second, third, compute_copy, g, scalars};
  const auto run = [&]<bool kMomentum, bool kCentred>() {
    launch("rmsprop_step", t, arguments.maximize,
           [&]<class S>() { return RmspropRule<S, kMomentum, kCentred>(arguments); });
  };
  if (velocity)
    gradient_average ? run.operator()<true, true>() : run.operator()<true, false>();
  else
    gradient_average ? run.operator()<false, true>() : run.operator()<false, false>();
}

void adagrad_step(const Queue&, const View& w, const View& sum, const View& compute_copy, const View& g,
                  const View& scalars, AdagradArguments arguments) {
  launch("adagrad_step", {w, sum, kNone, kNone, compute_copy, g, scalars}, arguments.maximize,
         [&]<class S>() { return AdagradRule<S>(arguments); });
}

void lion_step(const Queue&, const View& w, const View& m, const View& compute_copy, const View& g, const View& scalars,
               LionArguments arguments) {
  launch("lion_step", {w, m, kNone, kNone, compute_copy, g, scalars}, arguments.maximize,
         [&]<class S>() { return LionRule<S>(arguments); });
}

void parameter_squares(const Queue&, const View& squares, const View& partial, const View& x, const View& chunks,
                       const View& firsts) {
  with_dtype<float, double, bf16>(x.dtype, "parameter_squares", [&]<class T>() {
    using S = Accumulate<T>;
    const T* values = x.as<T>();
    const int64_t *chunk = chunks.as<int64_t>(), *first = firsts.as<int64_t>();
    S *of_chunk = partial.as<S>(), *of_parameter = squares.as<S>();
    parallel_for(chunks.sizes[0], kChunkElements, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        double sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t i = chunk[3 * c]; i < chunk[3 * c + 1]; ++i) {
          const auto value = static_cast<double>(static_cast<S>(values[i]));
          sum += value * value;
        }
        of_chunk[c] = static_cast<S>(sum);
      }
    });
    for (int64_t p = 0; p < squares.sizes[0]; ++p) {
      S sum = 0;
      for (int64_t c = first[p]; c < first[p + 1]; ++c) sum += of_chunk[c];
      of_parameter[p] = sum;
    }
  });
}

void lars_step(const Queue&, const View& w, const View& velocity, const View& compute_copy, const View& g,
               const View& scalars, const View& chunks, const View& w_squares, const View& g_squares,
               LarsArguments arguments) {
  launch_by_parameter("lars_step", {w, velocity, kNone, kNone, compute_copy, g, scalars}, arguments.maximize, chunks,
                      w_squares, g_squares, [&]<class S>() { return LarsRule<S>(arguments); });
}

void lamb_direction(const Queue&, const View& u, const View& m, const View& v, const View& w, const View& g,
                    const View& scalars, const View& chunks, LambArguments arguments) {
  launch_by_parameter("lamb_direction", {w, m, v, u, kNone, g, scalars}, arguments.maximize, chunks, kNone, kNone,
                      [&]<class S>() { return LambDirectionRule<S>(arguments); });
}

void lamb_step(const Queue&, const View& w, const View& compute_copy, const View& u, const View& scalars,
               const View& chunks, const View& w_squares, const View& u_squares, LambArguments arguments) {
  launch_by_parameter("lamb_step", {w, kNone, kNone, kNone, compute_copy, u, scalars}, /*maximize=*/false, chunks,
                      w_squares, u_squares, [&]<class S>() { return LambRule<S>(arguments); });
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

void ema_step(const Queue&, const View& average, const View& w, const View& count, EmaArguments arguments) {
  WEFT_CHECK(w.rank == 1 && w.same_sizes(average) && w.is_contiguous() && average.is_contiguous() &&
                 w.dtype == average.dtype && w.dtype == count.dtype,
             "ema_step: expected flat ranges of one size and dtype, got average ", average, ", w ", w);
  with_dtype<float, double>(w.dtype, "ema_step", [&]<class S>() {
    // 1 - d from f64: in f32 little is left of it.
    const S least = static_cast<S>(1 - arguments.decay);
    const S fresh = arguments.warmup ? std::max(least, S(9) / (S(10) + count.as<S>()[0])) : least;
    const S* weight = w.as<S>();
    S* mean = average.as<S>();
    parallel_for(w.numel(), 2, [&](int64_t begin, int64_t end) {
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) mean[i] += fresh * (weight[i] - mean[i]);
    });
  });
}

void exchange(const Queue&, const View& a, const View& b) {
  WEFT_CHECK(a.rank == 1 && a.same_sizes(b) && a.is_contiguous() && b.is_contiguous() && a.dtype == b.dtype,
             "exchange: expected flat ranges of one size and dtype, got ", a, " and ", b);
  with_dtype<float, double>(a.dtype, "exchange", [&]<class S>() {
    S *one = a.as<S>(), *two = b.as<S>();
    parallel_for(a.numel(), 2,
                 [&](int64_t begin, int64_t end) { std::swap_ranges(one + begin, one + end, two + begin); });
  });
}

}  // namespace weft::kernels::cpu
