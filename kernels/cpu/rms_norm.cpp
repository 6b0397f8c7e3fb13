// SPDX-License-Identifier: Apache-2.0
#include "kernels/rms_norm.h"

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

constexpr int64_t kBlock = 1024;    ///< elements of a row that one sum in S takes
constexpr int64_t kBlockRows = 64;  ///< rows whose parts of dweight do

/// dx = invrms (g - xhat mean(g xhat)) + dx_in of one row, g = dy weight; its part of the sum for dweight.
template <class T, class S>
void backward_row(T* dx, S* gain_sum, const T* dy, const T* x, const T* dx_in, const S* gain, S scale, int64_t C) {
  S product = 0;
#pragma omp simd reduction(+ : product)
  for (int64_t c = 0; c < C; ++c) {
    const S d = static_cast<S>(dy[c]), xhat = static_cast<S>(x[c]) * scale;
    product += (gain ? d * gain[c] : d) * xhat;
  }
  const S share = product / static_cast<S>(C);
#pragma GCC ivdep
  for (int64_t c = 0; c < C; ++c) {
    const S d = static_cast<S>(dy[c]), xhat = static_cast<S>(x[c]) * scale;
    gain_sum[c] += d * xhat;
    dx[c] = static_cast<T>(scale * ((gain ? d * gain[c] : d) - xhat * share));
  }
  // Rounded before it is added to, as if another kernel added: the row is in the cache.
  for (int64_t c = 0; dx_in && c < C; ++c) dx[c] = static_cast<T>(static_cast<S>(dx[c]) + static_cast<S>(dx_in[c]));
}

}  // namespace

void rms_norm_forward(const Queue&, const View& y, const View& invrms, const View& sum, const View& x,
                      const View& residual, const View& weight, double eps) {
  with_types("rms_norm_forward", x, [&]<class T, class S>() {
    const int64_t M = x.sizes[0], C = x.sizes[1];
    const T *in = x.as<T>(), *added = optional<T>(residual);
    T *out = y.as<T>(), *sums = optional<T>(sum);
    S* const scales = invrms.as<S>();
    const S* const gain = optional<S>(weight);
    parallel_for(M, C, [&](int64_t begin, int64_t end) {
      for (int64_t m = begin; m < end; ++m) {
        const T* row = in + m * C;
        if (added) {
          const T* other = added + m * C;
          T* sum_row = sums + m * C;
#pragma GCC ivdep
          for (int64_t c = 0; c < C; ++c)
            sum_row[c] = static_cast<T>(static_cast<S>(row[c]) + static_cast<S>(other[c]));
          row = sum_row;
        }
        double squares = 0;
        for (int64_t first = 0; first < C; first += kBlock) {
          const int64_t last = std::min(C, first + kBlock);
          S part = 0;
#pragma omp simd reduction(+ : part)
          for (int64_t c = first; c < last; ++c) part += static_cast<S>(row[c]) * static_cast<S>(row[c]);
          squares += static_cast<double>(part);
        }
        const S scale = S(1) / std::sqrt(static_cast<S>(squares / static_cast<double>(C)) + static_cast<S>(eps));
        scales[m] = scale;
        T* out_row = out + m * C;
#pragma GCC ivdep
        for (int64_t c = 0; c < C; ++c) {
          const S xhat = static_cast<S>(row[c]) * scale;
          out_row[c] = static_cast<T>(gain ? xhat * gain[c] : xhat);
        }
      }
    });
  });
}

void rms_norm_backward(const Queue&, const View& dx, const View& dweight, const View& dy, const View& x,
                       const View& weight, const View& invrms, const View& dx_in) {
  with_types("rms_norm_backward", x, [&]<class T, class S>() {
    const int64_t M = x.sizes[0], C = x.sizes[1];
    const T *in = x.as<T>(), *slope = dy.as<T>(), *added = optional<T>(dx_in);
    T* const out = dx.as<T>();
    const S *scales = invrms.as<S>(), *gain = optional<S>(weight);
    // Chunks of rows have their own sum per column.
    const Chunks chunks(M, std::max<int64_t>(1, 4096 / std::max<int64_t>(C, 1)), 64);
    std::vector<double> sums(static_cast<size_t>(chunks.count * C));
    parallel_for(chunks.count, chunks.size * C, [&](int64_t begin, int64_t end) {
      std::vector<S> block_sum(static_cast<size_t>(C));
      for (int64_t i = begin; i < end; ++i)
        for (int64_t m = chunks.begin(i); m < chunks.end(i);) {
          std::fill(block_sum.begin(), block_sum.end(), S(0));
          for (const int64_t last = std::min(chunks.end(i), m + kBlockRows); m < last; ++m)
            backward_row(out + m * C, block_sum.data(), slope + m * C, in + m * C, added ? added + m * C : nullptr,
                         gain, scales[m], C);
          for (int64_t c = 0; c < C; ++c) sums[i * C + c] += static_cast<double>(block_sum[c]);
        }
    });
    if (!dweight) return;
    S* const dgain = dweight.as<S>();
    for (int64_t c = 0; c < C; ++c) {
      double total = 0;
      for (int64_t i = 0; i < chunks.count; ++i) total += sums[i * C + c];
      dgain[c] = static_cast<S>(total);
    }
  });
}

}  // namespace weft::kernels::cpu
