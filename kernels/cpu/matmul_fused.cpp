// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/allocator.h"
#include "kernels/cpu/elements.h"
#include "kernels/cpu/vector_math.h"
#include "kernels/matmul.h"

namespace weft::kernels::cpu {
namespace {

template <class C>
using Formula = void (*)(C* y, const C* s, int64_t n);

template <Unary f, class C>
void run_of(C* y, const C* s, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = unary_value<f, VectorMath>(s[i], C(0), C(0));
}

template <class C>
void copy_run(C* y, const C* s, int64_t n) {
  if (y != s) std::copy_n(s, n, y);
}

template <class C>
Formula<C> formula_of(Activation activation) {
  if (activation == Activation::relu) return run_of<Unary::relu, C>;
  if (activation == Activation::gelu) return run_of<Unary::gelu, C>;
  if (activation == Activation::gelu_tanh) return run_of<Unary::gelu_tanh, C>;
  return copy_run<C>;
}

/// y = f(sums) (+ residual), elementwise.
template <class C>
void apply(const View& y, const View& sums, const View& residual, Activation activation) {
  const Formula<C> formula = formula_of<C>(activation);
  if (!residual) {
    map<C, C, 1>(y, {&sums},
                 [formula](C* out, const std::array<const C*, 1>& in, int64_t n) { formula(out, in[0], n); });
    return;
  }
  map<C, C, 2>(y, {&sums, &residual}, [formula](C* out, const std::array<const C*, 2>& in, int64_t n) {
    constexpr int64_t kAtOnce = 256;  // y may be the residual: its old values are added before they go
    for (int64_t begin = 0; begin < n; begin += kAtOnce) {
      C values[kAtOnce];
      const int64_t count = std::min(kAtOnce, n - begin);
      formula(values, in[0] + begin, count);
      for (int64_t i = 0; i < count; ++i) out[begin + i] = values[i] + in[1][begin + i];
    }
  });
}

}  // namespace

void matmul_fused(const Queue& queue, const View& y, const View& pre, const View& a, const View& b, const View& bias,
                  const View& residual, MatmulFusedArguments arguments) {
  const auto fits = [&](const View& view) { return !view || is_laid_out_as(view, y); };
  WEFT_CHECK(fits(pre) && fits(residual), "matmul_fused: expected pre and residual laid out as ", y, ", got ", pre,
             " and ", residual);
  const bool narrow = is_floating(y.dtype) && size_of(y.dtype) == 2;
  // The sums must not be rounded before f, nor overwrite a residual that is y itself.
  View sums = pre ? pre : y;
  const Workspace unrounded(queue,
                            narrow || sums.data == residual.data
                                ? y.numel() * static_cast<int64_t>(narrow ? sizeof(float) : size_of(y.dtype))
                                : 0,
                            "matmul_fused");
  if (narrow || sums.data == residual.data) {
    sums = y;
    sums.data = unrounded.data();
    sums.dtype = narrow ? DType::f32 : y.dtype;
    sums.strides = {y.sizes[1] * y.sizes[2], y.sizes[2], 1};
  }
  matmul(queue, sums, a, b, bias, {arguments.alpha, Grad::overwrite});
  with_compute_type(y.dtype, [&]<class C>() {
    if constexpr (std::is_floating_point_v<C>) {
      if (pre && pre.data != sums.data) apply<C>(pre, sums, View::none(), Activation::none);
      if (y.data != sums.data || arguments.activation != Activation::none || residual)
        apply<C>(y, sums, residual, arguments.activation);
    }
  });
}

}  // namespace weft::kernels::cpu
