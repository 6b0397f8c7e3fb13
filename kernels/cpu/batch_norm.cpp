// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/batch_norm.h"

#include <cmath>
#include <vector>

#include "kernels/cpu/parallel.h"

// x is read as rows of C channels. Rows are cut into chunks that do not depend on the number of threads; each chunk
// makes its own sums per channel and the chunks are combined in order, so results are the same on any machine.

namespace weft::kernels::cpu {
namespace {

constexpr int64_t kMaxChunks = 64;

Chunks row_chunks(int64_t M, int64_t C) {
  return {M, std::max<int64_t>(1, 4096 / std::max<int64_t>(C, 1)), kMaxChunks};
}

constexpr int64_t kBlockRows = 32;  ///< rows that one sum in S takes
constexpr int64_t kFirstRows = 8;   ///< rows whose mean the others are taken from

/// Per channel: the mean, and m2, the sum of squared distances from it.
struct Moments {
  std::vector<double> mean, m2;
  explicit Moments(int64_t channels) : mean(static_cast<size_t>(channels)), m2(mean.size()) {}
};

/// sum += x - shift and square += (x - shift)^2 per channel, of kRows rows: more rows, fewer times that the sums
/// travel.
template <int kRows, class T, class S>
void add_rows(S* sum, S* square, const T* x, const S* shift, int64_t C) {
#pragma omp simd
  for (int64_t c = 0; c < C; ++c) {
    S total = 0, squares = 0;
    for (int r = 0; r < kRows; r += 2) {
      const S d0 = static_cast<S>(x[r * C + c]) - shift[c], d1 = static_cast<S>(x[(r + 1) * C + c]) - shift[c];
      total += d0 + d1;
      squares += d0 * d0 + d1 * d1;
    }
    sum[c] += total;
    square[c] += squares;
  }
}

template <class T, class S>
void add_distances(S* sum, S* square, const T* x, const S* shift, int64_t rows, int64_t C) {
  int64_t r = 0;
  for (; r + 8 <= rows; r += 8) add_rows<8>(sum, square, x + r * C, shift, C);
  for (; r < rows; ++r) {
#pragma omp simd
    for (int64_t c = 0; c < C; ++c) {
      const S d = static_cast<S>(x[r * C + c]) - shift[c];
      sum[c] += d;
      square[c] += d * d;
    }
  }
}

/// Moments of `rows` rows, of which `memory` (3 C) holds sums of blocks. Shifted by the mean of the first rows, so
/// that the squares stay small: no cancellation (Chan et al. 1983).
template <class T, class S>
void chunk_moments(double* mean, double* m2, S* memory, const T* x, int64_t rows, int64_t C) {
  S *shift = memory, *sum = shift + C, *square = sum + C;
  std::fill_n(memory, 3 * C, S(0));
  for (int64_t c = 0; c < C; ++c) shift[c] = static_cast<S>(x[c]);
  const int64_t first = std::min(rows, kFirstRows);
  add_distances(sum, square, x, shift, first, C);
  for (int64_t c = 0; c < C; ++c) shift[c] += sum[c] / static_cast<S>(first);
  std::fill_n(mean, C, 0.0);
  std::fill_n(m2, C, 0.0);
  for (int64_t r = 0; r < rows; r += kBlockRows) {
    std::fill_n(sum, 2 * C, S(0));
    add_distances(sum, square, x + r * C, shift, std::min(kBlockRows, rows - r), C);
    for (int64_t c = 0; c < C; ++c) {
      mean[c] += static_cast<double>(sum[c]);
      m2[c] += static_cast<double>(square[c]);
    }
  }
  const double share = 1.0 / static_cast<double>(rows);
  for (int64_t c = 0; c < C; ++c) {
    m2[c] -= mean[c] * mean[c] * share;
    mean[c] = static_cast<double>(shift[c]) + mean[c] * share;
  }
}

/// The batch statistics of all rows, in f64.
template <class T, class S>
void batch_moments(std::vector<double>& mean, std::vector<double>& variance, const T* x, int64_t M, int64_t C) {
  const Chunks chunks = row_chunks(M, C);
  Moments parts(chunks.count * C);
  parallel_for(chunks.count, chunks.size * C, [&](int64_t begin, int64_t end) {
    std::vector<S> memory(static_cast<size_t>(3 * C));
    for (int64_t i = begin; i < end; ++i)
      chunk_moments(parts.mean.data() + i * C, parts.m2.data() + i * C, memory.data(), x + chunks.begin(i) * C,
                    chunks.end(i) - chunks.begin(i), C);
  });
  for (int64_t c = 0; c < C; ++c) {
    double count = 0, m = 0, m2 = 0;
    for (int64_t i = 0; i < chunks.count; ++i) {
      const double rows = static_cast<double>(chunks.end(i) - chunks.begin(i));
      const double delta = parts.mean[i * C + c] - m;
      m += delta * (rows / (count + rows));  // exact where all rows are equal
      m2 += std::max(parts.m2[i * C + c], 0.0) + delta * delta * count * rows / (count + rows);
      count += rows;
    }
    mean[c] = m;
    variance[c] = m2 / count;
  }
}

/// An affine step per channel: (x - center) scale + shift. The difference is taken first: x and the mean may be large.
template <class S>
struct Affine {
  std::vector<S> center, scale, shift;

  /// (x - mean) invstd gain + offset; gain and offset may be null.
  template <class Mean, class Invstd>
  Affine(int64_t C, const Mean* mean, const Invstd& invstd, const S* gain, const S* offset)
      : center(static_cast<size_t>(C)), scale(center.size()), shift(center.size()) {
    for (int64_t c = 0; c < C; ++c) {
      const double factor = invstd(c) * (gain ? static_cast<double>(gain[c]) : 1.0);
      center[c] = static_cast<S>(mean[c]);
      scale[c] = static_cast<S>(factor);
      const double rest = static_cast<double>(mean[c]) - static_cast<double>(center[c]);
      shift[c] = static_cast<S>((offset ? static_cast<double>(offset[c]) : 0.0) - rest * factor);
    }
  }
};

/// y = relu?((x - center) scale + shift + residual?), one pass; y may be x. Through a small buffer, since GCC does not
/// vectorise the loop where the two may overlap.
template <class T, class S>
void scale_rows(T* y, const T* x, const T* residual, const Affine<S>& affine, bool relu, int64_t M, int64_t C) {
  constexpr int64_t kBlock = 64;
  const S *center = affine.center.data(), *scale = affine.scale.data(), *shift = affine.shift.data();
  parallel_for(M, C, [&](int64_t begin, int64_t end) {
    const auto rows = [&](auto with_residual, auto with_relu) {
      for (int64_t m = begin; m < end; ++m) {
        const T* in = x + m * C;
        const T* add = with_residual ? residual + m * C : nullptr;
        T* out = y + m * C;
        for (int64_t first = 0; first < C; first += kBlock) {
          const int64_t last = std::min(C, first + kBlock);
          S values[kBlock];
          for (int64_t c = first; c < last; ++c) {
            S value = (static_cast<S>(in[c]) - center[c]) * scale[c] + shift[c];
            if constexpr (with_residual) value += static_cast<S>(add[c]);
            if constexpr (with_relu) value = value < 0 ? S(0) : value;  // NaN passes
            values[c - first] = value;
          }
          for (int64_t c = first; c < last; ++c) out[c] = static_cast<T>(values[c - first]);
        }
      }
    };
    if (residual && relu)
      rows(std::true_type{}, std::true_type{});
    else if (residual)
      rows(std::true_type{}, std::false_type{});
    else if (relu)
      rows(std::false_type{}, std::true_type{});
    else
      rows(std::false_type{}, std::false_type{});
  });
}

/// sum += dy and product += dy (x - mean) per channel, four rows at a time so that the sums stay in registers longer.
template <bool kRelu, class T, class S>
void sum_rows(S* sum, S* product, const T* dy, const T* x, const T* y, const S* mean, int64_t rows, int64_t C) {
  const auto slope = [&](int64_t at) {
    const S g = static_cast<S>(dy[at]);
    if constexpr (kRelu)
      return static_cast<S>(y[at]) > 0 ? g : S(0);
    else
      return g;
  };
  int64_t m = 0;
  for (; m + 4 <= rows; m += 4) {
#pragma omp simd
    for (int64_t c = 0; c < C; ++c) {
      const int64_t at = m * C + c;
      const S g0 = slope(at), g1 = slope(at + C), g2 = slope(at + 2 * C), g3 = slope(at + 3 * C), center = mean[c];
      sum[c] += (g0 + g1) + (g2 + g3);
      product[c] += (g0 * (static_cast<S>(x[at]) - center) + g1 * (static_cast<S>(x[at + C]) - center)) +
                    (g2 * (static_cast<S>(x[at + 2 * C]) - center) + g3 * (static_cast<S>(x[at + 3 * C]) - center));
    }
  }
  for (; m < rows; ++m) {
#pragma omp simd
    for (int64_t c = 0; c < C; ++c) {
      const S g = slope(m * C + c);
      sum[c] += g;
      product[c] += g * (static_cast<S>(x[m * C + c]) - mean[c]);
    }
  }
}

/// dx = slope dy + bend (x - mean) + shift per channel, dresidual = dy, of a dy that counts where y > 0 (y none:
/// everywhere). Outputs that are none are not wanted.
template <class T, class S>
void gradient_rows(T* dx, T* dresidual, const T* dy, const T* x, const T* y, const S* slope, const S* bend,
                   const S* shift, const S* mean, int64_t M, int64_t C) {
  if (!dx && !dresidual) return;
  const auto rows = [&](auto with_relu, auto with_dx, auto with_residual) {
    parallel_for(M, C, [&](int64_t begin, int64_t end) {
      for (int64_t m = begin; m < end; ++m) {
#pragma GCC ivdep
        for (int64_t c = 0; c < C; ++c) {
          const int64_t at = m * C + c;
          S g = static_cast<S>(dy[at]);
          if constexpr (with_relu) g = static_cast<S>(y[at]) > 0 ? g : S(0);
          if constexpr (with_residual) dresidual[at] = static_cast<T>(g);
          if constexpr (with_dx)
            dx[at] = static_cast<T>(slope[c] * g + bend[c] * (static_cast<S>(x[at]) - mean[c]) + shift[c]);
        }
      }
    });
  };
  const auto with_outputs = [&](auto with_relu) {
    if (dx && dresidual)
      rows(with_relu, std::true_type{}, std::true_type{});
    else if (dx)
      rows(with_relu, std::true_type{}, std::false_type{});
    else
      rows(with_relu, std::false_type{}, std::true_type{});
  };
  if (y)
    with_outputs(std::true_type{});
  else
    with_outputs(std::false_type{});
}

template <class T>
T* optional(const View& view) {
  return view ? view.as<T>() : nullptr;
}

/// y by the statistics of a batch of `rows` rows, which are kept and move the running ones.
template <class T, class S>
void training_norm(const View& y, const View& save_mean, const View& save_invstd, const View& running_mean,
                   const View& running_var, const View& x, const View& weight, const View& bias, const View& residual,
                   const BatchNormArguments& arguments, const std::vector<double>& mean,
                   const std::vector<double>& variance, double rows) {
  const int64_t C = x.sizes[1];
  S *saved_mean = save_mean.as<S>(), *saved_invstd = save_invstd.as<S>();
  S *moving_mean = optional<S>(running_mean), *moving_var = optional<S>(running_var);
  const auto invstd = [&](int64_t c) { return 1.0 / std::sqrt(variance[c] + arguments.eps); };
  const double unbiased = rows > 1 ? rows / (rows - 1) : 1.0;
  for (int64_t c = 0; c < C; ++c) {
    saved_mean[c] = static_cast<S>(mean[c]);
    saved_invstd[c] = static_cast<S>(invstd(c));
    const double momentum = arguments.momentum;
    if (rows == 0) continue;  // no statistics: all ranks' batches are empty
    if (moving_mean) moving_mean[c] = static_cast<S>((1 - momentum) * moving_mean[c] + momentum * mean[c]);
    if (moving_var) moving_var[c] = static_cast<S>((1 - momentum) * moving_var[c] + momentum * variance[c] * unbiased);
  }
  const Affine<S> affine(C, mean.data(), invstd, optional<S>(weight), optional<S>(bias));
  scale_rows<T, S>(y.as<T>(), x.as<T>(), optional<T>(residual), affine, arguments.relu, x.sizes[0], C);
}

/// Calls body with T, the type of x, and S, the type of statistics.
template <class Body>
void with_types(const char* op, const View& x, Body&& body) {
  WEFT_CHECK(x.rank == 2 && x.is_contiguous(), op, ": expected a dense [M, C], got ", x);
  with_dtype<float, double, bf16, f16>(x.dtype, op, [&]<class T>() { body.template operator()<T, Accumulate<T>>(); });
}

}  // namespace

void batch_norm_forward(const Queue&, const View& y, const View& save_mean, const View& save_invstd,
                        const View& running_mean, const View& running_var, const View& x, const View& weight,
                        const View& bias, const View& residual, const View& mask, BatchNormArguments arguments) {
  WEFT_CHECK(!mask, "batch_norm_forward: the CPU makes no mask");
  with_types("batch_norm_forward", x, [&]<class T, class S>() {
    const int64_t M = x.sizes[0], C = x.sizes[1];
    if (M == 0 || C == 0) return;
    std::vector<double> mean(static_cast<size_t>(C)), variance(static_cast<size_t>(C));
    batch_moments<T, S>(mean, variance, x.as<T>(), M, C);
    training_norm<T, S>(y, save_mean, save_invstd, running_mean, running_var, x, weight, bias, residual, arguments,
                        mean, variance, static_cast<double>(M));
  });
}

void batch_norm_inference(const Queue&, const View& y, const View& x, const View& running_mean, const View& running_var,
                          const View& weight, const View& bias, const View& residual, BatchNormArguments arguments) {
  with_types("batch_norm_inference", x, [&]<class T, class S>() {
    const int64_t M = x.sizes[0], C = x.sizes[1];
    const S *mean = running_mean.as<S>(), *variance = running_var.as<S>();
    const auto invstd = [&](int64_t c) { return 1.0 / std::sqrt(static_cast<double>(variance[c]) + arguments.eps); };
    const Affine<S> affine(C, mean, invstd, optional<S>(weight), optional<S>(bias));
    scale_rows<T, S>(y.as<T>(), x.as<T>(), optional<T>(residual), affine, arguments.relu, M, C);
  });
}

void batch_norm_backward(const Queue&, const View& dx, const View& dresidual, const View& dweight, const View& dbias,
                         const View& dy, const View& x, const View& y, const View& weight, const View&,
                         const View& save_mean, const View& save_invstd, BatchNormArguments arguments) {
  with_types("batch_norm_backward", x, [&]<class T, class S>() {
    const int64_t M = x.sizes[0], C = x.sizes[1];
    WEFT_CHECK(!arguments.relu || y, "batch_norm_backward: relu needs the forward's output");
    const T *in = x.as<T>(), *gradient = dy.as<T>(), *out = arguments.relu ? y.as<T>() : nullptr;
    const S *mean = save_mean.as<S>(), *invstd = save_invstd.as<S>(), *gain = optional<S>(weight);

    // Pass 1: per channel sum(dy) and sum(dy (x - mean)).
    const Chunks chunks = row_chunks(M, C);
    std::vector<double> sums(static_cast<size_t>(chunks.count * C)), products(sums.size());
    parallel_for(chunks.count, chunks.size * C, [&](int64_t begin, int64_t end) {
      std::vector<S> block(static_cast<size_t>(2 * C));
      S *sum = block.data(), *product = sum + C;
      for (int64_t i = begin; i < end; ++i)
        for (int64_t first = chunks.begin(i); first < chunks.end(i); first += kBlockRows) {
          const int64_t rows = std::min(kBlockRows, chunks.end(i) - first);
          std::fill(block.begin(), block.end(), S(0));
          if (out)
            sum_rows<true>(sum, product, gradient + first * C, in + first * C, out + first * C, mean, rows, C);
          else
            sum_rows<false>(sum, product, gradient + first * C, in + first * C, out, mean, rows, C);
          for (int64_t c = 0; c < C; ++c) {
            sums[i * C + c] += static_cast<double>(sum[c]);
            products[i * C + c] += static_cast<double>(product[c]);
          }
        }
    });
    // dx = gain invstd (dy - mean(dy) - xhat mean(dy xhat)) = a dy + b (x - mean) + d per channel.
    std::vector<S> a(static_cast<size_t>(C)), b(a.size()), d(a.size());
    S *dgain = optional<S>(dweight), *doffset = optional<S>(dbias);
    for (int64_t c = 0; c < C; ++c) {
      double sum = 0, product = 0;
      for (int64_t i = 0; i < chunks.count; ++i) {
        sum += sums[i * C + c];
        product += products[i * C + c];
      }
      if (dgain) dgain[c] = static_cast<S>(product * invstd[c]);
      if (doffset) doffset[c] = static_cast<S>(sum);
      const double factor = static_cast<double>(invstd[c]) * (gain ? static_cast<double>(gain[c]) : 1.0);
      a[c] = static_cast<S>(factor);
      b[c] = static_cast<S>(-factor * invstd[c] * invstd[c] * product / static_cast<double>(M));
      d[c] = static_cast<S>(-factor * sum / static_cast<double>(M));
    }
    gradient_rows<T, S>(optional<T>(dx), optional<T>(dresidual), gradient, in, out, a.data(), b.data(), d.data(), mean,
                        M, C);
  });
}

void batch_norm_statistics(const Queue&, const View& part, const View& x) {
  with_types("batch_norm_statistics", x, [&]<class T, class S>() {
    const int64_t M = x.sizes[0], C = x.sizes[1];
    WEFT_CHECK(M > 0 && part.numel() == 2 * C + 1, "batch_norm_statistics: expected rows and a part of ", 2 * C + 1,
               " numbers, got ", x, " and ", part);
    std::vector<double> mean(static_cast<size_t>(C)), variance(static_cast<size_t>(C));
    batch_moments<T, S>(mean, variance, x.as<T>(), M, C);
    S* out = part.as<S>();
    for (int64_t c = 0; c < C; ++c) {
      out[c] = static_cast<S>(mean[c]);
      out[C + c] = static_cast<S>(variance[c] * static_cast<double>(M));
    }
    out[2 * C] = static_cast<S>(M);
  });
}

void batch_norm_of_parts(const Queue&, const View& y, const View& save_mean, const View& save_invstd, const View& total,
                         const View& running_mean, const View& running_var, const View& x, const View& weight,
                         const View& bias, const View& residual, const View& parts, const View& mask,
                         BatchNormArguments arguments) {
  WEFT_CHECK(!mask, "batch_norm_of_parts: the CPU makes no mask");
  with_types("batch_norm_of_parts", x, [&]<class T, class S>() {
    const int64_t C = x.sizes[1], n = parts.sizes[0];
    WEFT_CHECK(parts.rank == 2 && parts.is_contiguous() && n > 0 && parts.sizes[1] == 2 * C + 1,
               "batch_norm_of_parts: expected contiguous parts [n, ", 2 * C + 1, "], got ", parts);
    const S* in = parts.as<S>();
    std::vector<double> mean(static_cast<size_t>(C)), variance(static_cast<size_t>(C));
    double rows = 0;
    for (int64_t i = 0; i < n; ++i) rows += in[i * (2 * C + 1) + 2 * C];
    for (int64_t c = 0; c < C; ++c) {
      double count = 0, m2 = 0;
      for (int64_t i = 0; i < n; ++i) {
        const S* part = in + i * (2 * C + 1);
        const double more = part[2 * C], delta = part[c] - mean[c];
        if (more == 0) continue;  // the first part may have no rows
        mean[c] += delta * more / (count + more);
        m2 += part[C + c] + delta * delta * count * more / (count + more);
        count += more;
      }
      variance[c] = rows > 0 ? m2 / rows : 0;
    }
    if (total) total.as<S>()[0] = static_cast<S>(rows);
    training_norm<T, S>(y, save_mean, save_invstd, running_mean, running_var, x, weight, bias, residual, arguments,
                        mean, variance, rows);
  });
}

void batch_norm_backward_input(const Queue&, const View& dx, const View& dresidual, const View& mean_dy,
                               const View& mean_dyx, const View& dy, const View& x, const View& y, const View& weight,
                               const View&, const View& save_mean, const View& save_invstd,
                               BatchNormArguments arguments) {
  with_types("batch_norm_backward_input", x, [&]<class T, class S>() {
    WEFT_CHECK(!arguments.relu || y, "batch_norm_backward_input: relu needs the forward's output");
    const int64_t M = x.sizes[0], C = x.sizes[1];
    const S *invstd = save_invstd.as<S>(), *gain = optional<S>(weight);
    std::vector<S> a(static_cast<size_t>(C)), b(a.size()), d(a.size());
    for (int64_t c = 0; c < C; ++c) {
      const double factor = static_cast<double>(invstd[c]) * (gain ? static_cast<double>(gain[c]) : 1.0);
      a[c] = static_cast<S>(factor);
      b[c] = static_cast<S>(-factor * invstd[c] * mean_dyx.as<S>()[c]);
      d[c] = static_cast<S>(-factor * mean_dy.as<S>()[c]);
    }
    gradient_rows<T, S>(optional<T>(dx), optional<T>(dresidual), dy.as<T>(), x.as<T>(),
                        arguments.relu ? y.as<T>() : nullptr, a.data(), b.data(), d.data(), save_mean.as<S>(), M, C);
  });
}

}  // namespace weft::kernels::cpu
