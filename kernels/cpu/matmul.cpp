// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/matmul.h"

#include <atomic>
#include <cstdio>
#include <vector>

#include "kernels/cpu/dnnl_matmul.h"
#include "kernels/cpu/elements.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/unary_loops.h"
#include "kernels/runtime/allocator.h"

namespace weft::kernels::cpu {
namespace {

template <class C>
void add(C* to, const C* values, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] += values[i];
}

/// The epilogue: s = sums (+ bias) (+ y) goes to pre, f(s) (+ residual) to y.
template <class C>
struct Epilogue {
  const View &y, &pre, &residual;
  std::vector<C> bias;  ///< empty for none
  UnaryLoop<C> f;       ///< null for none
  bool accumulate;

  void operator()(const C* sums, int64_t row, int64_t column, int64_t count) const {
    const int64_t M = y.sizes[1], offset = row / M * y.strides[0] + (M == 1 ? 0 : row % M * y.strides[1]) + column;
    const auto run = [&](const View& view, int64_t at) { return Run{element(view, offset + at), view.dtype, 1}; };
    constexpr int64_t kAtOnce = 256;
    C values[kAtOnce], other[kAtOnce];
    for (int64_t at = 0; at < count; at += kAtOnce) {
      const int64_t n = std::min(kAtOnce, count - at);
      const auto add_run = [&](const View& view) {
        load(other, run(view, at), n);
        add(values, other, n);
      };
      std::copy_n(sums + at, n, values);
      if (!bias.empty()) add(values, bias.data() + column + at, n);
      if (accumulate) add_run(y);
      if (pre) store(run(pre, at), values, n);
      if (f) f(values, values, n, C(0), C(0));
      if (residual) add_run(residual);
      store(run(y, at), values, n);
    }
  }
};

template <class C>
UnaryLoop<C> loop_of(Activation activation, const View& y) {
  return activation == Activation::none ? nullptr : unary_loop<C>(unary_of(activation), y.dtype);
}

template <class C>
std::vector<C> values_of(const View& bias) {
  if (!bias) return {};
  std::vector<C> values(static_cast<size_t>(bias.sizes[0]));
  load(values.data(), {bias.data, bias.dtype, bias.strides[0]}, bias.sizes[0]);
  return values;
}

void check(const View& y, const View& a, const View& b, const View& bias) {
  const auto fits = [](const View& whole, const View& part) {
    return part.sizes[0] == whole.sizes[0] || part.sizes[0] == 1;
  };
  WEFT_CHECK(y.rank == 3 && a.rank == 3 && b.rank == 3 && a.sizes[1] == y.sizes[1] && b.sizes[2] == y.sizes[2] &&
                 a.sizes[2] == b.sizes[1] && fits(y, a) && fits(y, b) && a.dtype == b.dtype,
             "matmul: expected [B,M,N] = [B,M,K] @ [B,K,N], got ", y, " = ", a, " @ ", b);
  WEFT_CHECK(!bias || (bias.rank == 1 && bias.sizes[0] == y.sizes[2]), "matmul: expected bias [", y.sizes[2], "], got ",
             bias);
  WEFT_CHECK(is_floating(a.dtype), "matmul: expected a floating dtype, got ", a);
}

/// Whether a copy of b, which oneDNN makes, would take longer than the product.
bool suits_few_rows(const View& a, const View& b) {
  return a.sizes[0] == 1 && b.sizes[0] == 1 &&
         is_few_rows({1, a.sizes[1], b.sizes[2], a.sizes[2], factor(a), factor(b)});
}

void compute(const View& y, const View& pre, const View& a, const View& b, const View& bias, const View& residual,
             double alpha, Activation activation, bool accumulate) {
  if (a.dtype == DType::bf16) note_bf16_in_f32();
  const Gemm g{y.sizes[0], y.sizes[1], y.sizes[2], a.sizes[2], factor(a), factor(b), alpha};
  with_compute_type(a.dtype, [&]<class C>() {
    if constexpr (std::is_floating_point_v<C>) {
      const int64_t row = g.m == 1 ? g.n : y.strides[1];
      if (y.dtype == dtype_of<C> && !pre && !bias && !residual && activation == Activation::none)
        gemm(g, static_cast<C*>(y.data), y.strides[0], row, accumulate);
      else
        gemm<C>(g, Epilogue<C>{y, pre, residual, values_of<C>(bias), loop_of<C>(activation, y), accumulate});
    }
  });
}

}  // namespace

void note_bf16_in_f32() {
  static std::atomic<bool> is_noted{false};
  if (dnnl_has_bf16() || is_noted.exchange(true)) return;
  std::fprintf(stderr,
               "weft: bf16 products and convolutions on this CPU are computed in f32: it has no bf16 instructions, or "
               "this build no oneDNN. bf16 saves memory here and no time\n");
}

void matmul(const Queue&, const View& y, const View& a, const View& b, const View& bias, MatmulArguments arguments) {
  check(y, a, b, bias);
  if (y.numel() == 0 || (!suits_few_rows(a, b) && dnnl_matmul(y, a, b, bias, arguments))) return;
  compute(y, View::none(), a, b, bias, View::none(), arguments.alpha, Activation::none,
          arguments.grad == Grad::accumulate);
}

void matmul_fused(const Queue& queue, const View& y, const View& pre, const View& a, const View& b, const View& bias,
                  const View& residual, MatmulFusedArguments arguments) {
  check(y, a, b, bias);
  const auto fits = [&](const View& view) { return !view || is_laid_out_as(view, y); };
  WEFT_CHECK(fits(pre) && fits(residual), "matmul_fused: expected pre and residual laid out as ", y, ", got ", pre,
             " and ", residual);
  if (y.numel() == 0) return;
  if ((a.dtype == DType::bf16 || a.dtype == DType::f32) && !suits_few_rows(a, b)) {
    // oneDNN's sums, to which f is applied: they must not be rounded before f, nor overwrite a residual that is y.
    View sums = pre ? pre : y;
    const bool aside = y.dtype != DType::f32 || sums.data == residual.data;
    const Workspace memory(queue, aside ? static_cast<size_t>(y.numel()) * sizeof(float) : 0, "matmul_fused");
    if (aside) sums = View::dense(memory.data(), DType::f32, {y.sizes[0], y.sizes[1], y.sizes[2]});
    if (dnnl_matmul(sums, a, b, bias, {arguments.alpha, Grad::overwrite})) {
      const Epilogue<float> finish{y, pre, residual, {}, loop_of<float>(arguments.activation, y), false};
      const int64_t M = y.sizes[1], N = y.sizes[2];
      return parallel_for(y.sizes[0] * M, N, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          finish(sums.as<float>() + i / M * sums.strides[0] + (M == 1 ? 0 : i % M * sums.strides[1]), i, 0, N);
      });
    }
  }
  compute(y, pre, a, b, bias, residual, arguments.alpha, arguments.activation, false);
}

}  // namespace weft::kernels::cpu
