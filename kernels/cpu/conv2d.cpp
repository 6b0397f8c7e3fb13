// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/conv2d.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/contracts/batch_norm.h"
#include "kernels/contracts/binary.h"
#include "kernels/contracts/conv2d_size.h"
#include "kernels/contracts/copy.h"
#include "kernels/runtime/allocator.h"

#include "kernels/cpu/conv2d_winograd.h"
#include "kernels/cpu/dnnl_conv2d.h"
#include "kernels/cpu/dnnl_matmul.h"
#include "kernels/cpu/parallel.h"

// Winograd's algorithm computes f32 with 3x3 filters (conv2d_winograd.cpp), oneDNN the other f32 and bf16. Where oneDNN
// has no kernel for bf16, and for f16, operands are widened to f32, which is 40 times as fast as loops over them. The
// plain loops below are the readable reference, run f64, and replace oneDNN where it is missing. Every loop over
// channels runs along memory.

namespace weft::kernels::cpu {
namespace {

/// The sizes of one convolution, in the letters of the contract.
struct Geometry {
  int64_t N, H, W, C, O, R, S, P, Q, G;
  int64_t group_in, group_out;  // channels of one group
  Conv2dArguments arguments;

  Geometry(const char* op, const View& x, const View& w, const View& y, const Conv2dArguments& a) : arguments(a) {
    WEFT_CHECK(x.rank == 4 && w.rank == 4 && y.rank == 4 && a.groups >= 1, op, ": expected x, w, y of rank 4, got ", x,
               ", ", w, ", ", y);
    N = x.sizes[0], H = x.sizes[1], W = x.sizes[2], C = x.sizes[3];
    O = w.sizes[0], R = w.sizes[1], S = w.sizes[2], group_in = w.sizes[3];
    P = y.sizes[1], Q = y.sizes[2], G = a.groups, group_out = O / G;
    const auto [p, q] = conv2d_output_size({H, W}, {R, S}, a);
    WEFT_CHECK(y.sizes[0] == N && P == p && Q == q && y.sizes[3] == O && C == group_in * G && O % G == 0, op,
               ": expected y [", N, ",", p, ",", q, ",", O, "] and groups dividing the channels, got x ", x, ", w ", w,
               ", y ", y, ", groups ", G);
    WEFT_CHECK(x.is_contiguous() && w.is_contiguous() && y.is_contiguous(), op, ": expected contiguous operands");
  }

  int64_t row(int64_t p, int64_t r) const {
    return p * arguments.stride.h - arguments.padding.h + r * arguments.dilation.h;
  }
  int64_t column(int64_t q, int64_t s) const {
    return q * arguments.stride.w - arguments.padding.w + s * arguments.dilation.w;
  }

  /// body(r, s, h, w) for each filter position that falls inside the image for output (p, q).
  template <class Body>
  void for_each_tap(int64_t p, int64_t q, Body&& body) const {
    for (int64_t r = 0; r < R; ++r) {
      const int64_t h = row(p, r);
      if (h < 0 || h >= H) continue;
      for (int64_t s = 0; s < S; ++s) {
        const int64_t w = column(q, s);
        if (w >= 0 && w < W) body(r, s, h, w);
      }
    }
  }
};

template <class T>
void forward(const Geometry& g, T* y, const T* x, const T* w, const T* bias) {
  using A = Accumulate<T>;
  parallel_for(g.N * g.P, g.Q * g.O * g.R * g.S * g.group_in, [&](int64_t begin, int64_t end) {
    for (int64_t np = begin; np < end; ++np) {
      const int64_t n = np / g.P, p = np % g.P;
      for (int64_t q = 0; q < g.Q; ++q) {
        for (int64_t o = 0; o < g.O; ++o) {
          A sum = bias ? static_cast<A>(bias[o]) : A(0);
          g.for_each_tap(p, q, [&](int64_t r, int64_t s, int64_t h, int64_t v) {
            const T* x_run = x + ((n * g.H + h) * g.W + v) * g.C + o / g.group_out * g.group_in;
            const T* w_run = w + ((o * g.R + r) * g.S + s) * g.group_in;
#pragma omp simd reduction(+ : sum)
            for (int64_t c = 0; c < g.group_in; ++c) sum += static_cast<A>(x_run[c]) * static_cast<A>(w_run[c]);
          });
          y[(np * g.Q + q) * g.O + o] = static_cast<T>(sum);
        }
      }
    }
  });
}

template <class T>
void backward_input(const Geometry& g, T* dx, const T* dy, const T* w) {
  using A = Accumulate<T>;
  const int64_t image = g.H * g.W * g.C;
  // An image belongs to one thread: its outputs scatter into it in a fixed order.
  parallel_for(g.N, g.P * g.Q * g.O * g.R * g.S * g.group_in, [&](int64_t begin, int64_t end) {
    std::vector<A> sums(static_cast<size_t>(image));
    for (int64_t n = begin; n < end; ++n) {
      std::fill(sums.begin(), sums.end(), A(0));
      for (int64_t p = 0; p < g.P; ++p) {
        for (int64_t q = 0; q < g.Q; ++q) {
          const T* dy_run = dy + ((n * g.P + p) * g.Q + q) * g.O;
          g.for_each_tap(p, q, [&](int64_t r, int64_t s, int64_t h, int64_t v) {
            A* out = sums.data() + (h * g.W + v) * g.C;
            for (int64_t o = 0; o < g.O; ++o) {
              const A slope = static_cast<A>(dy_run[o]);
              A* out_run = out + o / g.group_out * g.group_in;
              const T* w_run = w + ((o * g.R + r) * g.S + s) * g.group_in;
#pragma omp simd
              for (int64_t c = 0; c < g.group_in; ++c) out_run[c] += slope * static_cast<A>(w_run[c]);
            }
          });
        }
      }
      std::copy(sums.begin(), sums.end(), dx + n * image);
    }
  });
}

template <class T>
void backward_weight(const Geometry& g, T* dw, const T* dy, const T* x) {
  using A = Accumulate<T>;
  // A filter belongs to one thread. Sums have this number of output positions at a time: a sum of all would round more.
  constexpr int kPositions = 64;
  parallel_for(g.O, g.N * g.P * g.Q * g.R * g.S * g.group_in, [&](int64_t begin, int64_t end) {
    const auto count = static_cast<size_t>(g.R * g.S * g.group_in);
    std::vector<A> sums(count), part(count);
    for (int64_t o = begin; o < end; ++o) {
      std::fill(sums.begin(), sums.end(), A(0));
      int held = 0;
      const auto fold = [&] {
        for (size_t i = 0; i < count; ++i) sums[i] += std::exchange(part[i], A(0));
        held = 0;
      };
      for (int64_t n = 0; n < g.N; ++n) {
        for (int64_t p = 0; p < g.P; ++p) {
          for (int64_t q = 0; q < g.Q; ++q) {
            const A slope = static_cast<A>(dy[((n * g.P + p) * g.Q + q) * g.O + o]);
            g.for_each_tap(p, q, [&](int64_t r, int64_t s, int64_t h, int64_t v) {
              const T* x_run = x + ((n * g.H + h) * g.W + v) * g.C + o / g.group_out * g.group_in;
              A* sum = part.data() + (r * g.S + s) * g.group_in;
#pragma omp simd
              for (int64_t c = 0; c < g.group_in; ++c) sum[c] += slope * static_cast<A>(x_run[c]);
            });
            if (++held == kPositions) fold();
          }
        }
      }
      fold();
      for (size_t i = 0; i < count; ++i)
        dw[o * static_cast<int64_t>(count) + static_cast<int64_t>(i)] = static_cast<T>(sums[i]);
    }
  });
}

/// y as [positions, channels].
View rows_of(const View& y) {
  return y.numel() == 0 ? View::dense(y.data, y.dtype, {0, y.sizes[3]})
                        : View::dense(y.data, y.dtype, {y.numel() / y.sizes[3], y.sizes[3]});
}

bool is_half(DType dtype) { return dtype == DType::bf16 || dtype == DType::f16; }

/// f32 memory in the sizes of a dense operand.
class Wide {
 public:
  Wide(const Queue& queue, const View& narrow)
      : memory_(queue, static_cast<size_t>(narrow.numel()) * sizeof(float), "conv2d"), view_(narrow) {
    view_.data = narrow ? memory_.data() : nullptr;
    view_.dtype = DType::f32;
  }
  operator const View&() const { return view_; }  // NOLINT(google-explicit-constructor)

 private:
  Workspace memory_;
  View view_;
};

/// With the operand's values.
struct Widened : Wide {
  Widened(const Queue& queue, const View& narrow) : Wide(queue, narrow) {
    if (narrow) cpu::copy(queue, *this, narrow);
  }
};

}  // namespace

void conv2d_forward(const Queue& queue, const View& y, const View& x, const View& w, const View& bias,
                    Conv2dArguments arguments) {
  const Geometry geometry("conv2d_forward", x, w, y, arguments);
  WEFT_CHECK(
      x.dtype == w.dtype && y.dtype == x.dtype && (!bias || (bias.dtype == y.dtype && bias.numel() == geometry.O)),
      "conv2d_forward: expected one dtype and bias [", geometry.O, "], got ", x, ", ", w, ", ", y);
  if (suits_winograd(y, x, w, arguments)) return winograd_conv2d_forward(y, x, w, bias, arguments.padding);
  if (dnnl_conv2d_forward(y, x, w, bias, arguments)) return;
  if (is_half(x.dtype)) {
    if (x.dtype == DType::bf16) note_bf16_in_f32();
    const Wide wide(queue, y);
    cpu::conv2d_forward(queue, wide, Widened(queue, x), Widened(queue, w), Widened(queue, bias), arguments);
    return cpu::copy(queue, y, wide);
  }
  with_dtype<float, double>(x.dtype, "conv2d_forward", [&]<class T>() {
    forward<T>(geometry, y.as<T>(), x.as<T>(), w.as<T>(), bias ? bias.as<T>() : nullptr);
  });
}

// The norm takes a pass of its own, in place: oneDNN's ReLU post-op turns NaN into 0. The bias joins the mean: y would
// round it where both are large.
void conv2d_norm(const Queue& queue, const View& y, const View& x, const View& w, const View& bias, const View& mean,
                 const View& var, const View& weight, const View& norm_bias, const View& residual,
                 Conv2dNormArguments arguments) {
  check_norm(y, mean, var, weight, norm_bias, residual);
  WEFT_CHECK(!bias || bias.numel() == y.sizes[3], "conv2d_norm: expected bias [", y.sizes[3], "], got ", bias);
  cpu::conv2d_forward(queue, y, x, w, View::none(), arguments.conv);
  with_dtype<float, double, bf16, f16>(y.dtype, "conv2d_norm", [&]<class T>() {
    using S = Accumulate<T>;
    std::vector<S> center(static_cast<size_t>(bias ? y.sizes[3] : 0));
    for (size_t c = 0; c < center.size(); ++c) center[c] = mean.as<S>()[c] - static_cast<S>(bias.as<T>()[c]);
    const View rows = rows_of(y);
    cpu::batch_norm_inference(queue, rows, rows, bias ? View::dense(center.data(), mean.dtype, {y.sizes[3]}) : mean,
                              var, weight, norm_bias, residual ? rows_of(residual) : residual,
                              {.eps = arguments.eps, .relu = arguments.relu});
  });
}

void conv2d_statistics(const Queue& queue, const View& y, const View& part, const View& x, const View& w,
                       const View& bias, Conv2dArguments arguments) {
  check_part(y, part);
  cpu::conv2d_forward(queue, y, x, w, bias, arguments);
  cpu::batch_norm_statistics(queue, part, rows_of(y));
}

void conv2d_backward_input(const Queue& queue, const View& dx, const View& dy, const View& w, const View& dx_in,
                           Conv2dArguments arguments) {
  const Geometry geometry("conv2d_backward_input", dx, w, dy, arguments);
  check_dx_in(dx, dx_in);
  if (suits_winograd(dy, dx, w, arguments))
    winograd_conv2d_backward_input(dx, dy, w, arguments.padding);
  else if (!dnnl_conv2d_backward_input(dx, dy, w, arguments)) {
    if (is_half(dx.dtype)) {
      const Wide wide(queue, dx);
      cpu::conv2d_backward_input(queue, wide, Widened(queue, dy), Widened(queue, w), View::none(), arguments);
      cpu::copy(queue, dx, wide);
    } else {
      with_dtype<float, double>(dx.dtype, "conv2d_backward_input",
                                [&]<class T>() { backward_input<T>(geometry, dx.as<T>(), dy.as<T>(), w.as<T>()); });
    }
  }
  if (dx_in) binary_forward(queue, Binary::add, dx, dx, dx_in, 1);
}

void conv2d_backward_weight(const Queue& queue, const View& dw, const View& dy, const View& x,
                            Conv2dArguments arguments) {
  const Geometry geometry("conv2d_backward_weight", x, dw, dy, arguments);
  if (suits_winograd(dy, x, dw, arguments)) return winograd_conv2d_backward_weight(dw, dy, x, arguments.padding);
  if (dnnl_conv2d_backward_weight(dw, dy, x, arguments)) return;
  if (is_half(x.dtype)) {
    const Widened wide_dy(queue, dy), wide_x(queue, x);
    if (dw.dtype == DType::f32) return cpu::conv2d_backward_weight(queue, dw, wide_dy, wide_x, arguments);
    const Wide wide(queue, dw);
    cpu::conv2d_backward_weight(queue, wide, wide_dy, wide_x, arguments);
    return cpu::copy(queue, dw, wide);
  }
  with_dtype<float, double>(x.dtype, "conv2d_backward_weight",
                            [&]<class T>() { backward_weight<T>(geometry, dw.as<T>(), dy.as<T>(), x.as<T>()); });
}

}  // namespace weft::kernels::cpu
