// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/layer_norm.h"

#include <cmath>
#include <vector>

#include "kernels/cpu/elements.h"

namespace weft::kernels::cpu {
namespace {

template <class T>
T* optional(const View& view) {
  return view ? view.as<T>() : nullptr;
}

/// The weight of a norm's backward, ones where it has none: the loops have one form.
template <class S>
struct Gain {
  std::vector<S> ones;
  const S* values;
  Gain(const View& weight, int64_t C)
      : ones(weight ? 0 : static_cast<size_t>(C), S(1)), values(weight ? weight.as<S>() : ones.data()) {}
};

/// Calls body with T, the type of x, and S, the type of statistics and weights.
template <class Body>
void with_types(const char* op, const View& x, Body&& body) {
  WEFT_CHECK(x.rank == 2 && x.is_contiguous(), op, ": expected a dense [M, C], got ", x);
  with_dtype<float, double, bf16, f16>(x.dtype, op, [&]<class T>() { body.template operator()<T, Accumulate<T>>(); });
}

constexpr int64_t kBlock = 64;      ///< elements of a row that one sum in S takes, in vectors or not
constexpr int64_t kBlockRows = 64;  ///< rows whose parts of dweight and dbias do

/// x + residual of a row, in x's dtype.
template <class T, class S>
const T* add_row(T* sum, const T* x, const T* residual, int64_t C) {
#pragma GCC ivdep
  for (int64_t c = 0; c < C; ++c) sum[c] = static_cast<T>(static_cast<S>(x[c]) + static_cast<S>(residual[c]));
  return sum;
}

/// The mean of a row in two parts, center + rest: an element less center is nearly exact, and rest is small compared
/// with the row's deviation. A single number would round at the mean's size. Exact where all elements are equal.
template <class S>
struct RowMoments {
  S center, rest, variance;
};

/// Sums over the row, in f64, of each element's distance from `center` and of its square.
struct Distances {
  double sum = 0, squares = 0;
};
template <class T, class S>
Distances distances(const T* row, int64_t C, S center) {
  Distances all;
  for (int64_t begin = 0; begin < C; begin += kBlock) {
    const int64_t end = std::min(C, begin + kBlock);
    S sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum, squares)
    for (int64_t c = begin; c < end; ++c) {
      const S distance = static_cast<S>(row[c]) - center;
      sum += distance;
      squares += distance * distance;
    }
    all.sum += static_cast<double>(sum);
    all.squares += static_cast<double>(squares);
  }
  return all;
}

/// One pass, about the mean of the row's first elements; a second one where that is too far from the row's mean for the
/// squares to keep their digits (Chan et al. 1983).
template <class T, class S>
RowMoments<S> row_moments(const T* row, int64_t C) {
  constexpr int64_t kFirst = 64;
  const int64_t few = std::min(C, kFirst);
  const S first = static_cast<S>(row[0]);
  S sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t c = 0; c < few; ++c) sum += static_cast<S>(row[c]) - first;
  S center = first + sum / static_cast<S>(few);
  const double count = static_cast<double>(C);
  Distances all = distances<T, S>(row, C, center);
  if (all.sum * all.sum > 0.5 * all.squares * count) {
    center = static_cast<S>(static_cast<double>(center) + all.sum / count);
    all = distances<T, S>(row, C, center);
  }
  const double rest = all.sum / count;
  return {center, static_cast<S>(rest), static_cast<S>(std::max(all.squares / count - rest * rest, 0.0))};
}

/// dx of kRows consecutive rows, and their part of the sums for dweight and dbias: the sums are read
/// and written once for all of them.
template <int kRows, class T, class S>
void backward_rows(T* dx, S* gain_sum, S* offset_sum, const T* dy, const T* x, const S* gain, const S* mean,
                   const S* invstd, int64_t C) {
  S mean_d[kRows], mean_dx[kRows];  // means over the row of dxhat and of dxhat xhat
  for (int r = 0; r < kRows; ++r) {
    const T *row = x + r * C, *dy_row = dy + r * C;
    const S center = mean[r], scale = invstd[r];
    S sum = 0, product = 0;
#pragma omp simd reduction(+ : sum, product)
    for (int64_t c = 0; c < C; ++c) {
      const S weighted = static_cast<S>(dy_row[c]) * gain[c];
      sum += weighted;
      product += weighted * ((static_cast<S>(row[c]) - center) * scale);
    }
    mean_d[r] = sum / static_cast<S>(C);
    mean_dx[r] = product / static_cast<S>(C);
  }
#pragma GCC ivdep
  for (int64_t c = 0; c < C; ++c) {
    S gain_part = 0, offset_part = 0;
    for (int r = 0; r < kRows; ++r) {
      const S xhat = (static_cast<S>(x[r * C + c]) - mean[r]) * invstd[r], d = static_cast<S>(dy[r * C + c]);
      gain_part += d * xhat;
      offset_part += d;
      dx[r * C + c] = static_cast<T>(invstd[r] * (d * gain[c] - mean_d[r] - xhat * mean_dx[r]));
    }
    gain_sum[c] += gain_part;
    offset_sum[c] += offset_part;
  }
}

/// dx = invrms (g - xhat mean(g xhat)) + dx_in of one row, g = dy weight; its part of the sum for dweight.
template <class T, class S>
void backward_row(T* dx, S* gain_sum, const T* dy, const T* x, const T* dx_in, const S* gain, S scale, int64_t C) {
  S product = 0;
#pragma omp simd reduction(+ : product)
  for (int64_t c = 0; c < C; ++c) {
    const S d = static_cast<S>(dy[c]), xhat = static_cast<S>(x[c]) * scale;
    product += d * gain[c] * xhat;
  }
  const S share = product / static_cast<S>(C);
#pragma GCC ivdep
  for (int64_t c = 0; c < C; ++c) {
    const S d = static_cast<S>(dy[c]), xhat = static_cast<S>(x[c]) * scale;
    gain_sum[c] += d * xhat;
    dx[c] = static_cast<T>(scale * (d * gain[c] - xhat * share));
  }
  // Rounded before it is added to, as if another kernel added: the row is in the cache.
  for (int64_t c = 0; dx_in && c < C; ++c) dx[c] = static_cast<T>(static_cast<S>(dx[c]) + static_cast<S>(dx_in[c]));
}

}  // namespace

void layer_norm_forward(const Queue&, const View& y, const View& mean, const View& invstd, const View& sum_view,
                        const View& x, const View& residual, const View& weight, const View& bias, double eps) {
  with_types("layer_norm_forward", x, [&]<class T, class S>() {
    const int64_t M = x.sizes[0], C = x.sizes[1];
    if (C == 0) return;
    const T *in = x.as<T>(), *added = optional<T>(residual);
    T *out = y.as<T>(), *sums = optional<T>(sum_view);
    S *means = mean.as<S>(), *invstds = invstd.as<S>();
    const S *gain = optional<S>(weight), *offset = optional<S>(bias);
    parallel_for(M, C, [&](int64_t begin, int64_t end) {
      for (int64_t m = begin; m < end; ++m) {
        const T* const row = added ? add_row<T, S>(sums + m * C, in + m * C, added + m * C, C) : in + m * C;
        const auto [center, rest, variance] = row_moments<T, S>(row, C);
        const S scale = S(1) / std::sqrt(variance + static_cast<S>(eps));
        means[m] = center + rest;
        invstds[m] = scale;
        T* out_row = out + m * C;
#pragma GCC ivdep
        for (int64_t c = 0; c < C; ++c) {
          const S xhat = ((static_cast<S>(row[c]) - center) - rest) * scale;
          out_row[c] = static_cast<T>((gain ? xhat * gain[c] : xhat) + (offset ? offset[c] : S(0)));
        }
      }
    });
  });
}

void layer_norm_backward(const Queue&, const View& dx, const View& dweight, const View& dbias, const View& dy,
                         const View& x, const View& weight, const View& mean, const View& invstd, const View& dx_in) {
  with_types("layer_norm_backward", x, [&]<class T, class S>() {
    const int64_t M = x.sizes[0], C = x.sizes[1];
    const T *in = x.as<T>(), *slope = dy.as<T>(), *added = optional<T>(dx_in);
    T* out = dx.as<T>();
    const S *means = mean.as<S>(), *invstds = invstd.as<S>();
    S *dgain = optional<S>(dweight), *doffset = optional<S>(dbias);
    const Gain<S> gains(weight, C);
    const S* const gain = gains.values;
    // Chunks of rows have their own sums per column; both sums of a chunk lie side by side.
    const Chunks chunks(M, std::max<int64_t>(1, 4096 / std::max<int64_t>(C, 1)), 64);
    const bool keeps_sums = dgain || doffset;
    std::vector<double> sums(keeps_sums ? static_cast<size_t>(chunks.count * 2 * C) : 0);
    parallel_for(chunks.count, chunks.size * C, [&](int64_t begin, int64_t end) {
      std::vector<S> block_sums(static_cast<size_t>(2 * C));
      S *gain_sum = block_sums.data(), *offset_sum = gain_sum + C;
      for (int64_t i = begin; i < end; ++i) {
        for (int64_t m = chunks.begin(i); m < chunks.end(i);) {
          std::fill(block_sums.begin(), block_sums.end(), S(0));
          const int64_t last = std::min(chunks.end(i), m + kBlockRows);
          for (; m + 4 <= last; m += 4)
            backward_rows<4>(out + m * C, gain_sum, offset_sum, slope + m * C, in + m * C, gain, means + m, invstds + m,
                             C);
          for (; m < last; ++m)
            backward_rows<1>(out + m * C, gain_sum, offset_sum, slope + m * C, in + m * C, gain, means + m, invstds + m,
                             C);
          for (int64_t c = 0; keeps_sums && c < 2 * C; ++c) sums[i * 2 * C + c] += static_cast<double>(block_sums[c]);
        }
        // Rounded before it is added to, as if another kernel added: the chunk is in the cache.
        for (int64_t at = chunks.begin(i) * C; added && at < chunks.end(i) * C; ++at)
          out[at] = static_cast<T>(static_cast<S>(out[at]) + static_cast<S>(added[at]));
      }
    });
    for (int64_t c = 0; keeps_sums && c < C; ++c) {
      double gain_total = 0, offset_total = 0;
      for (int64_t i = 0; i < chunks.count; ++i) {
        gain_total += sums[i * 2 * C + c];
        offset_total += sums[i * 2 * C + C + c];
      }
      if (dgain) dgain[c] = static_cast<S>(gain_total);
      if (doffset) doffset[c] = static_cast<S>(offset_total);
    }
  });
}

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
        const T* const row = added ? add_row<T, S>(sums + m * C, in + m * C, added + m * C, C) : in + m * C;
        const double squares = sum_in_lanes<S, double>(C, [row](int64_t c) {
          const S value = static_cast<S>(row[c]);
          return value * value;
        });
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
    const S* const scales = invrms.as<S>();
    const Gain<S> gains(weight, C);
    const S* const gain = gains.values;
    // Chunks of rows have their own sum per column.
    const Chunks chunks(M, std::max<int64_t>(1, 4096 / std::max<int64_t>(C, 1)), 64);
    std::vector<double> sums(dweight ? static_cast<size_t>(chunks.count * C) : 0);
    parallel_for(chunks.count, chunks.size * C, [&](int64_t begin, int64_t end) {
      std::vector<S> block_sum(static_cast<size_t>(C));
      for (int64_t i = begin; i < end; ++i)
        for (int64_t m = chunks.begin(i); m < chunks.end(i);) {
          std::fill(block_sum.begin(), block_sum.end(), S(0));
          for (const int64_t last = std::min(chunks.end(i), m + kBlockRows); m < last; ++m)
            backward_row(out + m * C, block_sum.data(), slope + m * C, in + m * C, added ? added + m * C : nullptr,
                         gain, scales[m], C);
          for (int64_t c = 0; dweight && c < C; ++c) sums[i * C + c] += static_cast<double>(block_sum[c]);
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
