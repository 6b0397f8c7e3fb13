// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/pool2d.h"

#include <limits>
#include <vector>

#include "kernels/cpu/parallel.h"

namespace weft::kernels::cpu {
namespace {

/// The sizes of a pooling; x [N, H, W, C], y [N, P, Q, C].
struct Geometry {
  int64_t N, H, W, C, P, Q;
  Geometry(const View& x, const View& y)
      : N(x.sizes[0]), H(x.sizes[1]), W(x.sizes[2]), C(x.sizes[3]), P(y.sizes[1]), Q(y.sizes[2]) {}
};

/// Positions [begin, end) of a dimension.
struct Span {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};

/// The positions that window i covers, of n.
Span window(int64_t i, int64_t stride, int64_t padding, int64_t kernel, int64_t n) {
  const int64_t start = i * stride - padding;
  return {std::max<int64_t>(start, 0), std::min(start + kernel, n)};
}
/// The windows (of `count`) that cover position h.
Span covering(int64_t h, int64_t stride, int64_t padding, int64_t kernel, int64_t count) {
  const int64_t first = h + padding - kernel + 1;
  return {first <= 0 ? 0 : (first + stride - 1) / stride, std::min((h + padding) / stride + 1, count)};
}
/// Part i of n positions cut into `parts` (they may overlap by one).
Span adaptive(int64_t i, int64_t n, int64_t parts) { return {i * n / parts, ((i + 1) * n + parts - 1) / parts}; }

template <class Body>
void with_type(const char* op, const View& x, Body&& body) {
  WEFT_CHECK(x.rank == 4 && x.is_contiguous(), op, ": expected a dense [N, H, W, C], got ", x);
  with_dtype<float, double, bf16, f16>(x.dtype, op, std::forward<Body>(body));
}

constexpr int64_t kBlock = 16;  ///< pixels that one sum in T's own precision takes: a window of many is summed in f64

/// y[n, p, q] = sum over the windows' pixels, divided by divisor(rows, columns).
template <class T, class Rows, class Columns, class Divisor>
void average(T* y, const T* x, const Geometry& g, Rows rows, Columns columns, Divisor divisor) {
  parallel_for(g.N * g.P, g.Q * g.C * 4, [&](int64_t begin, int64_t end) {
    using A = Accumulate<T>;
    std::vector<A> sum(static_cast<size_t>(g.C));
    std::vector<double> total(sum.size());
    for (int64_t np = begin; np < end; ++np)
      for (int64_t q = 0; q < g.Q; ++q) {
        const Span hs = rows(np % g.P), ws = columns(q);
        T* const out = y + (np * g.Q + q) * g.C;
        const bool large = hs.size() * ws.size() > kBlock;
        std::fill(sum.begin(), sum.end(), A(0));
        if (large) std::fill(total.begin(), total.end(), 0.0);
        int64_t summed = 0;
        for (int64_t h = hs.begin; h < hs.end; ++h)
          for (int64_t w = ws.begin; w < ws.end; ++w) {
            const T* pixel = x + ((np / g.P * g.H + h) * g.W + w) * g.C;
            for (int64_t c = 0; c < g.C; ++c) sum[c] += static_cast<A>(pixel[c]);
            if (!large || ++summed % kBlock != 0) continue;
            for (int64_t c = 0; c < g.C; ++c) total[c] += static_cast<double>(sum[c]), sum[c] = A(0);
          }
        const A count = divisor(np % g.P, q);
        if (large) {
          const double factor = 1.0 / static_cast<double>(count);
          for (int64_t c = 0; c < g.C; ++c) out[c] = static_cast<T>(static_cast<A>((total[c] + sum[c]) * factor));
        } else {
          const A factor = A(1) / count;
          for (int64_t c = 0; c < g.C; ++c) out[c] = static_cast<T>(sum[c] * factor);
        }
      }
  });
}

/// dx[n, h, w] = sum over the windows that cover it of dy / divisor.
template <class T, class Rows, class Columns, class Divisor>
void average_backward(T* dx, const T* dy, const Geometry& g, Rows rows, Columns columns, Divisor divisor) {
  parallel_for(g.N * g.H, g.W * g.C * 4, [&](int64_t begin, int64_t end) {
    std::vector<Accumulate<T>> sum(static_cast<size_t>(g.C));
    for (int64_t nh = begin; nh < end; ++nh)
      for (int64_t w = 0; w < g.W; ++w) {
        const Span ps = rows(nh % g.H), qs = columns(w);
        std::fill(sum.begin(), sum.end(), Accumulate<T>(0));
        for (int64_t p = ps.begin; p < ps.end; ++p)
          for (int64_t q = qs.begin; q < qs.end; ++q) {
            const T* gradient = dy + ((nh / g.H * g.P + p) * g.Q + q) * g.C;
            const auto factor = Accumulate<T>(1) / divisor(p, q);
            for (int64_t c = 0; c < g.C; ++c) sum[c] += static_cast<Accumulate<T>>(gradient[c]) * factor;
          }
        for (int64_t c = 0; c < g.C; ++c) dx[(nh * g.W + w) * g.C + c] = static_cast<T>(sum[c]);
      }
  });
}

/// How many elements an average over window (p, q) is divided by.
auto window_divisor(const Geometry& g, const Pool2dArguments& a) {
  return [g, a](int64_t p, int64_t q) {
    if (!a.count_include_pad)
      return window(p, a.stride.h, a.padding.h, a.kernel.h, g.H).size() *
             window(q, a.stride.w, a.padding.w, a.kernel.w, g.W).size();
    const int64_t top = p * a.stride.h - a.padding.h, left = q * a.stride.w - a.padding.w;
    return (std::min(top + a.kernel.h, g.H + a.padding.h) - top) *
           (std::min(left + a.kernel.w, g.W + a.padding.w) - left);
  };
}

/// A window's first pixel: its values are the largest so far.
template <class T>
void take_all(const T* pixel, int32_t position, Accumulate<T>* best, int32_t* at, int64_t channels) {
  for (int64_t c = 0; c < channels; ++c) best[c] = static_cast<Accumulate<T>>(pixel[c]), at[c] = position;
}

/// Takes a value larger than the largest so far, and the first NaN. Both results are written whether they change or
/// not: that is what vectorises.
template <class T>
void take_larger(const T* __restrict pixel, int32_t position, Accumulate<T>* __restrict best, int32_t* __restrict at,
                 int64_t channels) {
  for (int64_t c = 0; c < channels; ++c) {
    const auto value = static_cast<Accumulate<T>>(pixel[c]), old = best[c];
    const bool takes = (value > old) | ((value != value) & (old == old));
    best[c] = takes ? value : old;
    at[c] = takes ? position : at[c];
  }
}

/// Adds the gradients of the windows whose largest value is at `position`. All are read: that is what vectorises.
template <class T>
void add_chosen(Accumulate<T>* __restrict sum, const T* __restrict gradient, const int32_t* __restrict at,
                int32_t position, int64_t channels) {
  for (int64_t c = 0; c < channels; ++c) {
    const auto value = static_cast<Accumulate<T>>(gradient[c]);
    sum[c] += at[c] == position ? value : Accumulate<T>(0);
  }
}

}  // namespace

void max_pool2d_forward(const Queue&, const View& y, const View& index, const View& x, Pool2dArguments a) {
  with_type("max_pool2d_forward", x, [&]<class T>() {
    const Geometry g(x, y);
    T* out = y.as<T>();
    const T* in = x.as<T>();
    int32_t* where = index.as<int32_t>();
    parallel_for(g.N * g.P, g.Q * g.C * a.kernel.h * a.kernel.w, [&](int64_t begin, int64_t end) {
      std::vector<Accumulate<T>> best(static_cast<size_t>(g.C));
      for (int64_t np = begin; np < end; ++np)
        for (int64_t q = 0; q < g.Q; ++q) {
          const Span hs = window(np % g.P, a.stride.h, a.padding.h, a.kernel.h, g.H);
          const Span ws = window(q, a.stride.w, a.padding.w, a.kernel.w, g.W);
          int32_t* at = where + (np * g.Q + q) * g.C;
          take_all(in + ((np / g.P * g.H + hs.begin) * g.W + ws.begin) * g.C,
                   static_cast<int32_t>(hs.begin * g.W + ws.begin), best.data(), at, g.C);
          for (int64_t h = hs.begin; h < hs.end; ++h)
            for (int64_t w = ws.begin; w < ws.end; ++w)
              take_larger(in + ((np / g.P * g.H + h) * g.W + w) * g.C, static_cast<int32_t>(h * g.W + w), best.data(),
                          at, g.C);
          for (int64_t c = 0; c < g.C; ++c) out[(np * g.Q + q) * g.C + c] = static_cast<T>(best[c]);
        }
    });
  });
}

void max_pool2d_backward(const Queue&, const View& dx, const View& dy, const View& index, Pool2dArguments a) {
  with_type("max_pool2d_backward", dx, [&]<class T>() {
    const Geometry g(dx, dy);
    T* out = dx.as<T>();
    const T* gradient = dy.as<T>();
    const int32_t* where = index.as<int32_t>();
    parallel_for(g.N * g.H, g.W * g.C * 4, [&](int64_t begin, int64_t end) {
      std::vector<Accumulate<T>> sum(static_cast<size_t>(g.C));
      for (int64_t nh = begin; nh < end; ++nh)
        for (int64_t w = 0; w < g.W; ++w) {
          const int64_t h = nh % g.H;
          const Span ps = covering(h, a.stride.h, a.padding.h, a.kernel.h, g.P);
          const Span qs = covering(w, a.stride.w, a.padding.w, a.kernel.w, g.Q);
          const int32_t position = static_cast<int32_t>(h * g.W + w);
          std::fill(sum.begin(), sum.end(), Accumulate<T>(0));
          for (int64_t p = ps.begin; p < ps.end; ++p)
            for (int64_t q = qs.begin; q < qs.end; ++q) {
              const int64_t at = ((nh / g.H * g.P + p) * g.Q + q) * g.C;
              add_chosen(sum.data(), gradient + at, where + at, position, g.C);
            }
          for (int64_t c = 0; c < g.C; ++c) out[(nh * g.W + w) * g.C + c] = static_cast<T>(sum[c]);
        }
    });
  });
}

void avg_pool2d_forward(const Queue&, const View& y, const View& x, Pool2dArguments a) {
  with_type("avg_pool2d_forward", x, [&]<class T>() {
    const Geometry g(x, y);
    const auto divisor = window_divisor(g, a);
    average(
        y.as<T>(), x.as<T>(), g, [&](int64_t p) { return window(p, a.stride.h, a.padding.h, a.kernel.h, g.H); },
        [&](int64_t q) { return window(q, a.stride.w, a.padding.w, a.kernel.w, g.W); },
        [&](int64_t p, int64_t q) { return static_cast<Accumulate<T>>(divisor(p, q)); });
  });
}

void avg_pool2d_backward(const Queue&, const View& dx, const View& dy, Pool2dArguments a) {
  with_type("avg_pool2d_backward", dx, [&]<class T>() {
    const Geometry g(dx, dy);
    const auto divisor = window_divisor(g, a);
    average_backward(
        dx.as<T>(), dy.as<T>(), g, [&](int64_t h) { return covering(h, a.stride.h, a.padding.h, a.kernel.h, g.P); },
        [&](int64_t w) { return covering(w, a.stride.w, a.padding.w, a.kernel.w, g.Q); },
        [&](int64_t p, int64_t q) { return static_cast<Accumulate<T>>(divisor(p, q)); });
  });
}

void adaptive_avg_pool2d_forward(const Queue&, const View& y, const View& x) {
  with_type("adaptive_avg_pool2d_forward", x, [&]<class T>() {
    const Geometry g(x, y);
    average(
        y.as<T>(), x.as<T>(), g, [&](int64_t p) { return adaptive(p, g.H, g.P); },
        [&](int64_t q) { return adaptive(q, g.W, g.Q); },
        [&](int64_t p, int64_t q) {
          return static_cast<Accumulate<T>>(adaptive(p, g.H, g.P).size() * adaptive(q, g.W, g.Q).size());
        });
  });
}

void adaptive_avg_pool2d_backward(const Queue&, const View& dx, const View& dy) {
  with_type("adaptive_avg_pool2d_backward", dx, [&]<class T>() {
    const Geometry g(dx, dy);
    // Part p covers h when floor(p n / P) <= h < ceil((p + 1) n / P).
    const auto parts = [](int64_t h, int64_t n, int64_t count) {
      Span span{h * count / n, ((h + 1) * count + n - 1) / n};
      while (span.begin > 0 && adaptive(span.begin - 1, n, count).end > h) --span.begin;
      while (span.end > span.begin && adaptive(span.end - 1, n, count).begin > h) --span.end;
      return Span{span.begin, std::min(span.end, count)};
    };
    average_backward(
        dx.as<T>(), dy.as<T>(), g, [&](int64_t h) { return parts(h, g.H, g.P); },
        [&](int64_t w) { return parts(w, g.W, g.Q); },
        [&](int64_t p, int64_t q) {
          return static_cast<Accumulate<T>>(adaptive(p, g.H, g.P).size() * adaptive(q, g.W, g.Q).size());
        });
  });
}

}  // namespace weft::kernels::cpu
