// SPDX-License-Identifier: Apache-2.0
#include "kernels/layer_norm.h"

#include <cmath>
#include <vector>

#include "kernels/cpu/parallel.h"

namespace weft::kernels::cpu {
namespace {

template <class T>
T* optional(const View& view) {
  return view ? view.as<T>() : nullptr;
}

/// Calls body with T, the type of x, and S, the type of statistics and weights.
template <class Body>
void with_types(const char* op, const View& x, Body&& body) {
  WEFT_CHECK(x.rank == 2 && x.is_contiguous(), op, ": expected a dense [M, C], got ", x);
  with_dtype<float, double, bf16, f16>(x.dtype, op, [&]<class T>() { body.template operator()<T, Accumulate<T>>(); });
}

}  // namespace

void layer_norm_forward(const Queue&, const View& y, const View& mean, const View& invstd, const View& x,
                        const View& weight, const View& bias, double eps) {
  with_types("layer_norm_forward", x, [&]<class T, class S>() {
    const int64_t M = x.sizes[0], C = x.sizes[1];
    const T* in = x.as<T>();
    T* out = y.as<T>();
    S *means = mean.as<S>(), *invstds = invstd.as<S>();
    const S *gain = optional<S>(weight), *offset = optional<S>(bias);
    parallel_for(M, C, [&](int64_t begin, int64_t end) {
      for (int64_t m = begin; m < end; ++m) {
        const T* row = in + m * C;
        S sum = 0, square = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t c = 0; c < C; ++c) sum += static_cast<S>(row[c]);
        const S center = sum / static_cast<S>(C);
        // A second pass over the row, which is in the cache: no cancellation.
#pragma omp simd reduction(+ : square)
        for (int64_t c = 0; c < C; ++c) square += (static_cast<S>(row[c]) - center) * (static_cast<S>(row[c]) - center);
        const S scale = S(1) / std::sqrt(square / static_cast<S>(C) + static_cast<S>(eps));
        means[m] = center;
        invstds[m] = scale;
#pragma omp simd
        for (int64_t c = 0; c < C; ++c) {
          const S xhat = (static_cast<S>(row[c]) - center) * scale;
          out[m * C + c] = static_cast<T>((gain ? xhat * gain[c] : xhat) + (offset ? offset[c] : S(0)));
        }
      }
    });
  });
}

void layer_norm_backward(const Queue&, const View& dx, const View& dweight, const View& dbias, const View& dy,
                         const View& x, const View& weight, const View& mean, const View& invstd) {
  with_types("layer_norm_backward", x, [&]<class T, class S>() {
    const int64_t M = x.sizes[0], C = x.sizes[1];
    const T *in = x.as<T>(), *slope = dy.as<T>();
    T* out = dx.as<T>();
    const S *means = mean.as<S>(), *invstds = invstd.as<S>(), *gain = optional<S>(weight);
    S *dgain = optional<S>(dweight), *doffset = optional<S>(dbias);
    // Chunks of rows have their own sums per column; both sums of a chunk lie side by side.
    const Chunks chunks(M, std::max<int64_t>(1, 4096 / std::max<int64_t>(C, 1)), 64);
    std::vector<S> sums(static_cast<size_t>(chunks.count * 2 * C));
    parallel_for(chunks.count, chunks.size * C, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        S *gain_sum = sums.data() + i * 2 * C, *offset_sum = gain_sum + C;
        for (int64_t m = chunks.begin(i); m < chunks.end(i); ++m) {
          const T *row = in + m * C, *dy_row = slope + m * C;
          const S center = means[m], scale = invstds[m];
          S sum = 0, product = 0;
#pragma omp simd reduction(+ : sum, product)
          for (int64_t c = 0; c < C; ++c) {
            const S xhat = (static_cast<S>(row[c]) - center) * scale, d = static_cast<S>(dy_row[c]);
            const S weighted = gain ? d * gain[c] : d;
            sum += weighted;
            product += weighted * xhat;
            gain_sum[c] += d * xhat;
            offset_sum[c] += d;
          }
          sum /= static_cast<S>(C);
          product /= static_cast<S>(C);
#pragma omp simd
          for (int64_t c = 0; c < C; ++c) {
            const S xhat = (static_cast<S>(row[c]) - center) * scale, d = static_cast<S>(dy_row[c]);
            out[m * C + c] = static_cast<T>(scale * ((gain ? d * gain[c] : d) - sum - xhat * product));
          }
        }
      }
    });
    for (int64_t c = 0; c < C; ++c) {
      double gain_total = 0, offset_total = 0;
      for (int64_t i = 0; i < chunks.count; ++i) {
        gain_total += static_cast<double>(sums[i * 2 * C + c]);
        offset_total += static_cast<double>(sums[i * 2 * C + C + c]);
      }
      if (dgain) dgain[c] = static_cast<S>(gain_total);
      if (doffset) doffset[c] = static_cast<S>(offset_total);
    }
  });
}

}  // namespace weft::kernels::cpu
