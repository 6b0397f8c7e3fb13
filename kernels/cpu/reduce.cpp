// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/reduce.h"

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/cpu/elements.h"

// The dimensions of x are split into kept and reduced ones. Two loops cover all cases: the reduced dimensions lie
// inside (each output sums a run of x) or outside (whole rows of x are added to a row of sums).

namespace weft::kernels::cpu {
namespace {

// For two numbers; NaN is larger and smaller than any. No branch: loops over them vectorise.
template <class S>
S larger(S a, S b) {
  return (b > a) | (b != b) ? b : a;
}
template <class S>
S smaller(S a, S b) {
  return (b < a) | (b != b) ? b : a;
}

/// Integers wrap.
template <class S>
S times(S a, S b) {
  if constexpr (std::is_integral_v<S>)
    return static_cast<S>(static_cast<std::make_unsigned_t<S>>(a) * static_cast<std::make_unsigned_t<S>>(b));
  else
    return a * b;
}

/// The largest or smallest of n numbers and of `start`, 32 of them side by side.
template <class S, class Join>
S extreme(const S* x, int64_t n, S start, const Join& join) {
  constexpr int64_t kLanes = 32;
  S lanes[kLanes];
  std::fill_n(lanes, kLanes, start);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int64_t l = 0; l < kLanes; ++l) lanes[l] = join(lanes[l], x[i + l]);
  for (; i < n; ++i) lanes[0] = join(lanes[0], x[i]);
  for (const S lane : lanes) start = join(start, lane);
  return start;
}

/// How one reduction folds values of type S.
template <class S>
struct Fold {
  /// For results over many numbers; a few of them at a time (rows: kBlockRows) are folded in S.
  using Wide = std::conditional_t<std::is_floating_point_v<S>, double, S>;
  Reduce f;
  S start() const {
    if (f == Reduce::max)
      return std::numeric_limits<S>::has_infinity ? -std::numeric_limits<S>::infinity() : std::numeric_limits<S>::min();
    if (f == Reduce::min)
      return std::numeric_limits<S>::has_infinity ? std::numeric_limits<S>::infinity() : std::numeric_limits<S>::max();
    return f == Reduce::prod ? 1 : 0;
  }
  template <class W>
  W join(W a, W b) const {  // two partial results
    if (f == Reduce::max) return larger(a, b);
    if (f == Reduce::min) return smaller(a, b);
    if (f == Reduce::prod) return times(a, b);
    return a + b;
  }
  Wide run(const S* x, int64_t n) const {
    if (f == Reduce::max) return static_cast<Wide>(extreme(x, n, start(), larger<S>));
    if (f == Reduce::min) return static_cast<Wide>(extreme(x, n, start(), smaller<S>));
    if (f == Reduce::prod) {
      Wide product = 1;
      for (int64_t i = 0; i < n; ++i) product = times(product, static_cast<Wide>(x[i]));
      return product;
    }
    if (f == Reduce::sum_squares || f == Reduce::norm)
      return sum_in_lanes<S, Wide>(n, [x](int64_t i) { return x[i] * x[i]; });
    return sum_in_lanes<S, Wide>(n, [x](int64_t i) { return x[i]; });
  }
  void add_row(S* sums, const S* x, int64_t n) const {
    if (f == Reduce::max)
      for (int64_t i = 0; i < n; ++i) sums[i] = larger(sums[i], x[i]);
    else if (f == Reduce::min)
      for (int64_t i = 0; i < n; ++i) sums[i] = smaller(sums[i], x[i]);
    else if (f == Reduce::prod)
      for (int64_t i = 0; i < n; ++i) sums[i] = times(sums[i], x[i]);
    else if (f == Reduce::sum_squares || f == Reduce::norm)
      for (int64_t i = 0; i < n; ++i) sums[i] += x[i] * x[i];
    else
      for (int64_t i = 0; i < n; ++i) sums[i] += x[i];
  }
  double finish(double total, int64_t count) const {
    if (f == Reduce::mean) return total / static_cast<double>(count);
    if (f == Reduce::norm) return std::sqrt(total);
    return total;
  }
};

/// The dimensions of x in two groups, as views of the same memory.
struct Split {
  View kept, reduced;  // sizes and strides only
  Split(const View& y, const View& x) {
    kept = reduced = View{x.data, x.dtype, 0, {}, {}};
    for (int d = 0; d < x.rank; ++d) {
      View& group = y.sizes[d] == 1 && x.sizes[d] != 1 ? reduced : kept;
      group.sizes[group.rank] = x.sizes[d];
      group.strides[group.rank++] = x.strides[d];
    }
  }
};

int64_t inner_stride(const View& view) {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int d = 0; d < view.rank; ++d)
    if (view.sizes[d] > 1) least = std::min(least, view.strides[d]);
  return least;
}

constexpr int64_t kBuffer = 512, kBlockRows = 32, kTile = 4096;

template <class S>
typename Fold<S>::Wide reduce_at(const Fold<S>& fold, const View& x, const Nest<1>& nest, int64_t base, int64_t begin,
                                 int64_t end) {
  S buffer[kBuffer];
  using Wide = typename Fold<S>::Wide;
  Wide total = static_cast<Wide>(fold.start());
  nest.walk(begin, end, [&](const auto& offset, int64_t length) {
    for (int64_t at = 0; at < length; at += kBuffer) {
      const int64_t n = std::min(kBuffer, length - at), stride = nest.inner_strides()[0];
      total = fold.join(
          total, fold.run(elements({element(x, base + offset[0] + at * stride), x.dtype, stride}, n, buffer), n));
    }
  });
  return total;
}

/// One long reduction to a single value: chunks in parallel, joined in order.
template <class S>
double reduce_all(const Fold<S>& fold, const View& x, const Nest<1>& nest) {
  const Chunks chunks(nest.total, 16384, 256);
  std::vector<double> parts(static_cast<size_t>(chunks.count));
  parallel_for(chunks.count, chunks.size, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) parts[i] = reduce_at(fold, x, nest, 0, chunks.begin(i), chunks.end(i));
  });
  double result = static_cast<double>(fold.start());
  for (const double part : parts) result = fold.join(result, part);
  return result;
}

template <class S, class Out>
void reduce_as(Reduce f, const View& y, const View& x) {
  const Fold<S> fold{f};
  const Split split(y, x);
  Out* out = y.as<Out>();
  const int64_t outputs = y.numel(), count = split.reduced.numel();
  const Nest<1> inside({&split.reduced});
  using Wide = typename Fold<S>::Wide;
  const auto put = [&](int64_t i, Wide value) {
    if constexpr (std::is_integral_v<S>)
      out[i] = static_cast<Out>(value);
    else
      out[i] = static_cast<Out>(fold.finish(value, count));
  };
  if (outputs == 1) {
    if constexpr (std::is_integral_v<S>)
      put(0, reduce_at(fold, x, inside, 0, 0, inside.total));
    else
      out[0] = static_cast<Out>(fold.finish(reduce_all(fold, x, inside), count));
    return;
  }
  // The outputs in y's order: kept dimensions are not reordered, so walk them by hand.
  const auto offset_of = [&](int64_t i) {
    int64_t offset = 0;
    for (int d = split.kept.rank - 1; d >= 0; --d) {
      offset += i % split.kept.sizes[d] * split.kept.strides[d];
      i /= split.kept.sizes[d];
    }
    return offset;
  };
  const int64_t row = split.kept.rank ? split.kept.sizes[split.kept.rank - 1] : 1;
  const bool rows_outside =
      split.kept.rank && count > 1 && row > 1 && split.kept.strides[split.kept.rank - 1] < inner_stride(split.reduced);
  if (!rows_outside) {
    parallel_for(outputs, count, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) put(i, reduce_at(fold, x, inside, offset_of(i), 0, inside.total));
    });
    return;
  }
  // Rows of `row` outputs in tiles; each adds count rows of x, in chunks that do not depend on the threads.
  const int64_t stride = split.kept.strides[split.kept.rank - 1];
  const int64_t width = std::min(row, kTile), tiles = (row + width - 1) / width, groups = outputs / row * tiles;
  const Chunks chunks(count, std::max<int64_t>(1, 4 * kTile / width), groups >= 64 ? 1 : 64);
  std::vector<Wide> parts(static_cast<size_t>(groups * chunks.count * width), static_cast<Wide>(fold.start()));
  parallel_for(groups * chunks.count, chunks.size * width, [&](int64_t begin, int64_t end) {
    std::vector<S> buffer(static_cast<size_t>(width)), sums(buffer.size());
    const int64_t block_rows = f == Reduce::prod ? 1 : kBlockRows;  // products of some rows may leave S's range
    for (int64_t job = begin; job < end; ++job) {
      const int64_t group = job / chunks.count, chunk = job % chunks.count, first = group % tiles * width;
      const int64_t base = offset_of(group / tiles * row + first), n = std::min(width, row - first);
      Wide* const part = parts.data() + job * width;
      int64_t summed = 0;
      const auto flush = [&] {
        for (int64_t i = 0; i < n; ++i) part[i] = fold.join(part[i], static_cast<Wide>(sums[i]));
        std::fill_n(sums.begin(), n, fold.start());
      };
      std::fill_n(sums.begin(), n, fold.start());
      inside.walk(chunks.begin(chunk), chunks.end(chunk), [&](const auto& offset, int64_t length) {
        for (int64_t i = 0; i < length; ++i) {
          void* const from = element(x, base + offset[0] + i * inside.inner_strides()[0]);
          fold.add_row(sums.data(), elements({from, x.dtype, stride}, n, buffer.data()), n);
          if (++summed % block_rows == 0) flush();
        }
      });
      flush();
    }
  });
  for (int64_t group = 0; group < groups; ++group) {
    Wide* const all = parts.data() + group * chunks.count * width;
    for (int64_t chunk = 1; chunk < chunks.count; ++chunk)
      for (int64_t i = 0; i < width; ++i) all[i] = fold.join(all[i], all[chunk * width + i]);
    const int64_t first = group / tiles * row + group % tiles * width;
    for (int64_t i = 0; i < std::min(width, row - group % tiles * width); ++i) put(first + i, all[i]);
  }
}

}  // namespace

void reduce(const Queue&, Reduce f, const View& y, const View& x) {
  WEFT_CHECK(y.rank == x.rank && y.is_contiguous(), "reduce: expected a dense y of x's rank, got y ", y, ", x ", x);
  if (y.numel() == 0) return;
  WEFT_CHECK(x.numel() > 0 || (f != Reduce::max && f != Reduce::min), "reduce: the maximum or minimum of nothing: ", x);
  WEFT_CHECK(is_floating(x.dtype) || (f != Reduce::mean && f != Reduce::norm), "reduce: mean and norm need a floating ",
             "tensor, got ", x);
  with_compute_type(x.dtype, [&]<class S>() {
    if constexpr (std::is_integral_v<S>) {
      with_dtype<int64_t, int32_t>(y.dtype, "reduce", [&]<class Out>() { reduce_as<S, Out>(f, y, x); });
    } else {
      with_dtype<float, double, bf16, f16>(y.dtype, "reduce", [&]<class Out>() { reduce_as<S, Out>(f, y, x); });
    }
  });
}

void argmax(const Queue&, const View& y, const View& x, int dim) {
  WEFT_CHECK(y.rank == x.rank && y.is_contiguous(), "argmax: expected a dense y of x's rank, got y ", y, ", x ", x);
  WEFT_CHECK(x.sizes[dim] > 0 || y.numel() == 0, "argmax: no elements along dimension ", dim, " of ", x);
  int64_t* out = y.as<int64_t>();
  with_compute_type(x.dtype, [&]<class S>() {
    const int64_t length = x.sizes[dim], stride = x.strides[dim];
    parallel_for(y.numel(), length, [&](int64_t begin, int64_t end) {
      std::vector<S> values(static_cast<size_t>(length));
      for (int64_t i = begin; i < end; ++i) {
        int64_t rest = i, offset = 0;
        for (int d = x.rank - 1; d >= 0; --d) {
          offset += rest % y.sizes[d] * (d == dim ? 0 : x.strides[d]);
          rest /= y.sizes[d];
        }
        load(values.data(), Run{element(x, offset), x.dtype, stride}, length);
        int64_t best = 0;
        for (int64_t k = 1; k < length; ++k)
          if (values[k] > values[best] || (values[k] != values[k] && values[best] == values[best])) best = k;
        out[i] = best;
      }
    });
  });
}

}  // namespace weft::kernels::cpu
