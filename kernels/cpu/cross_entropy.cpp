// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/cross_entropy.h"

#include <cmath>
#include <limits>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/vector_math.h"

namespace weft::kernels::cpu {
namespace {

/// The smoothed target of one row: classes or probabilities.
template <class T>
struct Target {
  using S = Accumulate<T>;
  const int64_t* classes;  // or null
  const T* probabilities;  // or null
  int64_t C;
  CrossEntropyArguments arguments;

  Target(const View& target, int64_t columns, const CrossEntropyArguments& a)
      : classes(target.dtype == DType::i64 ? target.as<int64_t>() : nullptr),
        probabilities(classes ? nullptr : target.as<T>()),
        C(columns),
        arguments(a) {}

  bool ignored(int64_t n) const { return classes && classes[n] == arguments.ignore_index; }
  bool valid(int64_t n) const { return !classes || (classes[n] >= 0 && classes[n] < C); }
  /// The target of every class but the row's own.
  S off_class() const { return static_cast<S>(arguments.label_smoothing) / static_cast<S>(C); }
  S kept() const { return 1 - static_cast<S>(arguments.label_smoothing); }
  /// For probability targets.
  S at(int64_t n, int64_t c) const { return kept() * static_cast<S>(probabilities[n * C + c]) + off_class(); }
};

}  // namespace

void cross_entropy_forward(const Queue&, const View& loss, const View& lse, const View& weight, const View& logits,
                           const View& target, CrossEntropyArguments arguments) {
  with_dtype<float, double, bf16, f16>(logits.dtype, "cross_entropy_forward", [&]<class T>() {
    using S = Accumulate<T>;
    const int64_t N = logits.sizes[0], C = logits.sizes[1];
    const int64_t pitch = row_pitch(logits);
    const Target<T> targets(target, C, arguments);
    const T* x = logits.as<T>();
    S *losses = loss.as<S>(), *maxima = lse.as<S>(), *logs = maxima + N, *weights = weight ? weight.as<S>() : nullptr;
    parallel_for(N, C * 8, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        const T* row = x + n * pitch;
        S largest = -std::numeric_limits<S>::infinity();
#pragma omp simd reduction(max : largest)
        for (int64_t c = 0; c < C; ++c) largest = std::max(largest, static_cast<S>(row[c]));
        S sum = 0, total = 0;
#pragma omp simd reduction(+ : sum, total)
        for (int64_t c = 0; c < C; ++c) {
          const S distance = static_cast<S>(row[c]) - largest;
          sum += VectorMath::exp(distance);
          total += distance;
        }
        const S log_sum = std::log(sum);
        maxima[n] = largest;
        logs[n] = log_sum;
        if (weights) weights[n] = targets.ignored(n) ? S(0) : S(1);
        if (targets.ignored(n)) {
          losses[n] = 0;
        } else if (!targets.valid(n)) {
          losses[n] = std::numeric_limits<S>::quiet_NaN();
        } else if (targets.classes) {
          losses[n] = log_sum - targets.kept() * (static_cast<S>(row[targets.classes[n]]) - largest);
          if (arguments.label_smoothing != 0) losses[n] -= targets.off_class() * total;
        } else {
          S result = 0;
#pragma omp simd reduction(+ : result)
          for (int64_t c = 0; c < C; ++c) result += targets.at(n, c) * (log_sum - (static_cast<S>(row[c]) - largest));
          losses[n] = result;
        }
      }
    });
  });
}

void cross_entropy_backward(const Queue&, const View& dlogits, const View& dloss, const View& logits, const View& lse,
                            const View& target, CrossEntropyArguments arguments) {
  with_dtype<float, double, bf16, f16>(logits.dtype, "cross_entropy_backward", [&]<class T>() {
    using S = Accumulate<T>;
    const int64_t N = logits.sizes[0], C = logits.sizes[1], stride = dloss.strides[0], pitch = row_pitch(logits);
    const Target<T> targets(target, C, arguments);
    const T* x = logits.as<T>();
    T* dx = dlogits.as<T>();
    const S *gradient = dloss.as<S>(), *maxima = lse.as<S>(), *logs = maxima + N;
    parallel_for(N, C * 8, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        const T* row = x + n * pitch;
        T* out = dx + n * pitch;  // may be `row`
        if (targets.ignored(n)) {
          std::fill_n(out, C, static_cast<T>(S(0)));
          continue;
        }
        const S slope = gradient[n * stride], largest = maxima[n], log_sum = logs[n], others = targets.off_class();
        const auto probability = [=](T logit) { return VectorMath::exp((static_cast<S>(logit) - largest) - log_sum); };
        if (targets.classes) {
          const int64_t own = targets.valid(n) ? targets.classes[n] : -1;
          const T logit = own < 0 ? T(0) : row[own];
#pragma GCC ivdep
          for (int64_t c = 0; c < C; ++c) out[c] = static_cast<T>(slope * (probability(row[c]) - others));
          if (own >= 0) out[own] = static_cast<T>(slope * (probability(logit) - (targets.kept() + others)));
        } else {
          S mass = 0;
#pragma omp simd reduction(+ : mass)
          for (int64_t c = 0; c < C; ++c) mass += targets.at(n, c);
#pragma GCC ivdep
          for (int64_t c = 0; c < C; ++c)
            out[c] = static_cast<T>(slope * (probability(row[c]) * mass - targets.at(n, c)));
        }
      }
    });
  });
}

}  // namespace weft::kernels::cpu
