// SPDX-License-Identifier: Apache-2.0
#include "kernels/unary.h"

#include "kernels/cpu/elements.h"
#include "kernels/cpu/vector_math.h"
#include "kernels/unary_math.h"

namespace weft::kernels::cpu {
namespace {

// One dense run of a formula: the loop nest around it is compiled once, not once per formula.
template <class C, size_t N>
using Formula = void (*)(C* y, const std::array<const C*, N>& x, int64_t n, C a, C b);

template <Unary f, class C>
void forward_run(C* y, const std::array<const C*, 1>& inputs, int64_t n, C a, C b) {
  const C* x = inputs[0];
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = unary_value<f, VectorMath>(x[i], a, b);
}

template <Unary f, class C>
void backward_run(C* dx, const std::array<const C*, 2>& inputs, int64_t n, C a, C b) {
  const C *dy = inputs[0], *saved = inputs[1];
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) dx[i] = unary_gradient<f, VectorMath>(dy[i], saved[i], a, b);
}

template <class C, size_t N>
void map_formula(Formula<C, N> formula, const View& y, const std::array<const View*, N>& x, UnaryArguments arguments) {
  const C a = static_cast<C>(arguments.a), b = static_cast<C>(arguments.b);
  map<C, C, N>(y, x,
               [formula, a, b](C* out, const std::array<const C*, N>& in, int64_t n) { formula(out, in, n, a, b); });
}

}  // namespace

void unary_forward(const Queue&, Unary f, const View& y, const View& x, UnaryArguments arguments) {
  WEFT_CHECK(y.same_sizes(x) && y.dtype == x.dtype, "unary_forward: expected y like x ", x, ", got ", y);
  with_compute_type(x.dtype, [&]<class C>() {
    Formula<C, 1> formula = nullptr;
    with_unary(f, [&]<Unary kF>() {
      if constexpr (std::is_floating_point_v<C> || unary_takes_integers(kF)) formula = forward_run<kF, C>;
    });
    WEFT_CHECK(formula, "unary_forward: expected a floating dtype, got ", x);
    map_formula<C, 1>(formula, y, {&x}, arguments);
  });
}

void unary_backward(const Queue&, Unary f, const View& dx, const View& dy, const View& saved,
                    UnaryArguments arguments) {
  WEFT_CHECK(dx.same_sizes(dy) && dx.same_sizes(saved) && dx.dtype == dy.dtype && dx.dtype == saved.dtype,
             "unary_backward: expected dx and saved like dy ", dy, ", got ", dx, " and ", saved);
  with_compute_type(dy.dtype, [&]<class C>() {
    if constexpr (std::is_floating_point_v<C>) {
      Formula<C, 2> formula = nullptr;
      with_unary(f, [&]<Unary kF>() { formula = backward_run<kF, C>; });
      map_formula<C, 2>(formula, dx, {&dy, &saved}, arguments);
    } else {
      fail("unary_backward: expected a floating dtype, got ", dy);
    }
  });
}

}  // namespace weft::kernels::cpu
