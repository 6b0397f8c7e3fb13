// SPDX-License-Identifier: Apache-2.0
#include "kernels/ema.h"

#include <algorithm>
#include <utility>

#include "kernels/cpu/parallel.h"

namespace weft::kernels::cpu {

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
