// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/unary.h"

#include <math.h>

#include "kernels/contracts/special_math.h"
#include "kernels/cpu/elements.h"
#include "kernels/cpu/processor.h"
#include "kernels/cpu/unary_loops.h"

// A loop runs over dense elements: the loop nest around it is compiled once, not once per formula.

namespace weft::kernels::cpu {

const MathLoops& math_loops() {
  static const MathLoops& best = has_avx512() ? math_avx512() : math_avx2();
  return best;
}

template <class C>
UnaryLoop<C> unary_loop(Unary f, DType result) {
  if constexpr (std::is_same_v<C, float>) {
    if (f == Unary::gelu && result == DType::bf16) return math_loops().gelu_for_bf16;
    return math_loops().value[static_cast<int>(f)];
  } else {
    UnaryLoop<C> loop = nullptr;
    with_unary(f, [&]<Unary kF>() {
      if constexpr (std::is_floating_point_v<C> || unary_takes_integers(kF)) loop = value_loop<kF, C>;
    });
    return loop;
  }
}
template UnaryLoop<float> unary_loop(Unary f, DType result);
template UnaryLoop<double> unary_loop(Unary f, DType result);

template <class C>
UnaryGradientLoop<C> unary_gradient_loop(Unary f) {
  if constexpr (std::is_same_v<C, float>) {
    return math_loops().gradient[static_cast<int>(f)];
  } else {
    UnaryGradientLoop<C> loop = nullptr;
    with_unary(f, [&]<Unary kF>() { loop = gradient_loop<kF, C>; });
    return loop;
  }
}
template UnaryGradientLoop<float> unary_gradient_loop(Unary f);
template UnaryGradientLoop<double> unary_gradient_loop(Unary f);

void unary_forward(const Queue&, Unary f, const View& y, const View& x, UnaryArguments arguments) {
  WEFT_CHECK(y.same_sizes(x) && y.dtype == x.dtype, "unary_forward: expected y like x ", x, ", got ", y);
  with_compute_type(x.dtype, [&]<class C>() {
    const UnaryLoop<C> loop = unary_loop<C>(f, y.dtype);
    WEFT_CHECK(loop, "unary_forward: expected a floating dtype, got ", x);
    map<C, C, 1>(y, {&x},
                 [=, a = static_cast<C>(arguments.a), b = static_cast<C>(arguments.b)](
                     C* out, const std::array<const C*, 1>& in, int64_t n) { loop(out, in[0], n, a, b); });
  });
}

void unary_backward(const Queue&, Unary f, const View& dx, const View& dy, const View& saved,
                    UnaryArguments arguments) {
  WEFT_CHECK(dx.same_sizes(dy) && dx.same_sizes(saved) && dx.dtype == dy.dtype && dx.dtype == saved.dtype,
             "unary_backward: expected dx and saved like dy ", dy, ", got ", dx, " and ", saved);
  with_compute_type(dy.dtype, [&]<class C>() {
    if constexpr (std::is_floating_point_v<C>) {
      const UnaryGradientLoop<C> loop = unary_gradient_loop<C>(f);
      map<C, C, 2>(dx, {&dy, &saved},
                   [=, a = static_cast<C>(arguments.a), b = static_cast<C>(arguments.b)](
                       C* out, const std::array<const C*, 2>& in, int64_t n) { loop(out, in[0], in[1], n, a, b); });
    } else {
      fail("unary_backward: expected a floating dtype, got ", dy);
    }
  });
}

namespace {

struct HostGamma {
  /// std::lgamma would write the sign into a variable that all threads share.
  static double lgamma(double x) {
    int sign = 0;
    return ::lgamma_r(x, &sign);
  }
};

}  // namespace

void special_forward(const Queue&, Special f, const View& y, const View& x, int order) {
  WEFT_CHECK(y.same_sizes(x) && y.dtype == x.dtype && is_floating(x.dtype),
             "special_forward: expected y like floating x ", x, ", got ", y);
  map<double, double, 1>(y, {&x}, [=](double* out, const std::array<const double*, 1>& in, int64_t n) {
    for (int64_t i = 0; i < n; ++i) out[i] = special_value<HostGamma>(f, in[0][i], order);
  });
}

}  // namespace weft::kernels::cpu
