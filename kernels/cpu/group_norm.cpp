// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/group_norm.h"

#include <cmath>
#include <vector>

#include "kernels/contracts/reduce.h"
#include "kernels/cpu/elements.h"

// A task takes neighbouring groups of one sample: columns of a matrix whose rows are the positions. Sums over positions
// are one per column, so that the loops vectorise along the channels; then the columns of a group are added.

namespace weft::kernels::cpu {
namespace {

constexpr int64_t kBlockRows = 64;  ///< rows that one sum in S takes

template <class T>
T* optional(const View& view) {
  return view ? view.as<T>() : nullptr;
}

/// The columns of some groups of one sample.
struct Columns {
  int64_t rows, count, pitch;
};

/// Two sums for each column: add(first, second, row) adds a row to them.
template <class S>
class ColumnSums {
 public:
  explicit ColumnSums(int64_t count)
      : first(static_cast<size_t>(count)), second(first.size()), part_(2 * first.size()) {}

  template <class Add>
  void over(const Columns& columns, const Add& add) {
    std::fill(first.begin(), first.end(), 0.0);
    std::fill(second.begin(), second.end(), 0.0);
    S *const one = part_.data(), *const two = one + columns.count;
    for (int64_t begin = 0; begin < columns.rows; begin += kBlockRows) {
      std::fill(part_.begin(), part_.end(), S(0));
      const int64_t end = std::min(columns.rows, begin + kBlockRows);
      for (int64_t row = begin; row < end; ++row) add(one, two, row);
      for (int64_t c = 0; c < columns.count; ++c) {
        first[static_cast<size_t>(c)] += static_cast<double>(one[c]);
        second[static_cast<size_t>(c)] += static_cast<double>(two[c]);
      }
    }
  }

  std::vector<double> first, second;

 private:
  std::vector<S> part_;
};

/// Calls body(sample, first group, groups) for the runs of groups of one sample, in parallel.
template <class Body>
void for_groups(const GroupNormShape& shape, const Body& body) {
  parallel_for(shape.N * shape.G, shape.P * shape.channels(), [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t n = begin / shape.G, group = begin % shape.G, count = std::min(shape.G - group, end - begin);
      body(n, group, count);
      begin += count;
    }
  });
}

}  // namespace

void group_norm_forward(const Queue&, const View& y, const View& mean, const View& invstd, const View& x,
                        const View& weight, const View& bias, double eps) {
  const GroupNormShape shape("group_norm_forward", x, y, mean, invstd);
  const int64_t wide = shape.channels();
  if (x.numel() == 0) return;
  with_dtype<float, double, bf16, f16>(x.dtype, "group_norm_forward", [&]<class T>() {
    using S = Accumulate<T>;
    const S *const gain = optional<S>(weight), *const offset = optional<S>(bias);
    for_groups(shape, [&](int64_t n, int64_t group, int64_t count) {
      const Columns columns{shape.P, count * wide, shape.C};
      const int64_t begin = n * shape.P * shape.C + group * wide;
      const T* const from = x.as<T>() + begin;
      T* const to = y.as<T>() + begin;
      ColumnSums<S> sums(columns.count);
      const auto size = static_cast<size_t>(columns.count);
      std::vector<S> center(size), rest(size), scale(size), shift(size);
      // The mean is center + rest, as in layer_norm.cpp; distances are taken from a number near it.
      for (int64_t c = 0; c < columns.count; ++c)
        center[static_cast<size_t>(c)] = static_cast<S>(from[c / wide * wide]);
      const double elements = static_cast<double>(shape.P * wide);
      const auto add = [&](S* distance, S* square, int64_t row) {
        const T* const line = from + row * columns.pitch;
        const S* const about = center.data();
#pragma omp simd
        for (int64_t c = 0; c < columns.count; ++c) {
          const S d = static_cast<S>(line[c]) - about[c];
          distance[c] += d;
          square[c] += d * d;
        }
      };
      const auto of_group = [&](const std::vector<double>& values, int64_t g) {
        double total = 0;
        for (int64_t c = g * wide; c < (g + 1) * wide; ++c) total += values[static_cast<size_t>(c)];
        return total;
      };
      sums.over(columns, add);
      bool far = false;  // the first element is no good center: the squares would lose digits
      for (int64_t g = 0; g < count; ++g) {
        const double sum = of_group(sums.first, g);
        far = far || !(sum * sum <= 0.5 * of_group(sums.second, g) * elements);
      }
      if (far) {
        for (int64_t g = 0; g < count; ++g) {
          const double step = of_group(sums.first, g) / elements;
          for (int64_t c = g * wide; c < (g + 1) * wide; ++c)
            center[static_cast<size_t>(c)] = static_cast<S>(static_cast<double>(center[static_cast<size_t>(c)]) + step);
        }
        sums.over(columns, add);
      }
      for (int64_t g = 0; g < count; ++g) {
        const double left = of_group(sums.first, g) / elements;
        const double variance = std::max(of_group(sums.second, g) / elements - left * left, 0.0);
        const S inverse = static_cast<S>(1 / std::sqrt(variance + eps));
        const int64_t at = n * shape.G + group + g;
        mean.as<S>()[at] = static_cast<S>(static_cast<double>(center[static_cast<size_t>(g * wide)]) + left);
        invstd.as<S>()[at] = inverse;
        for (int64_t c = g * wide; c < (g + 1) * wide; ++c) {
          const int64_t channel = group * wide + c;
          rest[static_cast<size_t>(c)] = static_cast<S>(left);
          scale[static_cast<size_t>(c)] = gain ? inverse * gain[channel] : inverse;
          shift[static_cast<size_t>(c)] = offset ? offset[channel] : S(0);
        }
      }
      const S *const about = center.data(), *const more = rest.data(), *const times = scale.data(),
                     *const plus = shift.data();
      for (int64_t row = 0; row < columns.rows; ++row) {
        const T* const line = from + row * columns.pitch;
        T* const out = to + row * columns.pitch;
#pragma GCC ivdep
        for (int64_t c = 0; c < columns.count; ++c)
          out[c] = static_cast<T>((static_cast<S>(line[c]) - about[c] - more[c]) * times[c] + plus[c]);
      }
    });
  });
}

void group_norm_backward(const Queue& queue, const View& dx, const View& dweight, const View& dbias, const View& dy,
                         const View& x, const View& weight, const View& mean, const View& invstd) {
  const GroupNormShape shape("group_norm_backward", x, dy, mean, invstd);
  const int64_t wide = shape.channels();
  with_dtype<float, double, bf16, f16>(x.dtype, "group_norm_backward", [&]<class T>() {
    using S = Accumulate<T>;
    const S* const gain = optional<S>(weight);
    std::vector<S> slopes(static_cast<size_t>(shape.N * shape.C)), offsets(slopes.size());  // one row for each sample
    if (x.numel() > 0)
      for_groups(shape, [&](int64_t n, int64_t group, int64_t count) {
        const Columns columns{shape.P, count * wide, shape.C};
        const int64_t begin = n * shape.P * shape.C + group * wide;
        const T *const from = x.as<T>() + begin, *const slope = dy.as<T>() + begin;
        T* const to = dx.as<T>() + begin;
        const auto size = static_cast<size_t>(columns.count);
        std::vector<S> about(size), inverse(size), times(size), less(size), tilt(size);
        for (int64_t c = 0; c < columns.count; ++c) {
          const int64_t at = n * shape.G + group + c / wide;
          about[static_cast<size_t>(c)] = mean.as<S>()[at];
          inverse[static_cast<size_t>(c)] = invstd.as<S>()[at];
          times[static_cast<size_t>(c)] = gain ? gain[group * wide + c] : S(1);
        }
        ColumnSums<S> sums(columns.count);
        const S *const center = about.data(), *const scale = inverse.data(), *const factor = times.data();
        sums.over(columns, [&](S* offset_sum, S* slope_sum, int64_t row) {
          const T *const line = from + row * columns.pitch, *const d = slope + row * columns.pitch;
#pragma omp simd
          for (int64_t c = 0; c < columns.count; ++c) {
            offset_sum[c] += static_cast<S>(d[c]);
            slope_sum[c] += static_cast<S>(d[c]) * ((static_cast<S>(line[c]) - center[c]) * scale[c]);
          }
        });
        for (int64_t g = 0; g < count; ++g) {
          double sum = 0, product = 0;
          for (int64_t c = g * wide; c < (g + 1) * wide; ++c) {
            const auto at = static_cast<size_t>(c);
            sum += static_cast<double>(times[at]) * sums.first[at];
            product += static_cast<double>(times[at]) * sums.second[at];
            const auto channel = static_cast<size_t>(n * shape.C + group * wide + c);
            offsets[channel] = static_cast<S>(sums.first[at]);
            slopes[channel] = static_cast<S>(sums.second[at]);
          }
          const double elements = static_cast<double>(shape.P * wide);
          std::fill_n(less.begin() + g * wide, wide, static_cast<S>(sum / elements));
          std::fill_n(tilt.begin() + g * wide, wide, static_cast<S>(product / elements));
        }
        const S *const mean_d = less.data(), *const mean_dx = tilt.data();
        for (int64_t row = 0; row < columns.rows; ++row) {
          const T *const line = from + row * columns.pitch, *const d = slope + row * columns.pitch;
          T* const out = to + row * columns.pitch;
#pragma GCC ivdep
          for (int64_t c = 0; c < columns.count; ++c) {
            const S xhat = (static_cast<S>(line[c]) - center[c]) * scale[c];
            out[c] = static_cast<T>(scale[c] * (static_cast<S>(d[c]) * factor[c] - mean_d[c] - xhat * mean_dx[c]));
          }
        }
      });
    const auto sum_of = [&](const View& to, std::vector<S>& parts) {
      if (to)
        reduce(queue, Reduce::sum, View::dense(to.data, to.dtype, {1, shape.C}),
               View::dense(parts.data(), to.dtype, {shape.N, shape.C}));
    };
    sum_of(dweight, slopes);
    sum_of(dbias, offsets);
  });
}

}  // namespace weft::kernels::cpu
