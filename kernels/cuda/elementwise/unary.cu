// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/unary.h"

#include <limits>

#include "kernels/contracts/unary_math.h"
#include "kernels/cuda/convert.cuh"
#include "kernels/cuda/elementwise.cuh"
#include "kernels/cuda/gemm/short_gelu.cuh"

// Geometry, ownership and cost: elementwise.cuh. Forward moves 2 elements per element, backward 3; the flops (1 for
// relu, about 30 for gelu, 11 in 16 bits) stay below the bandwidth: 90% of its roofline.
// f32 and bf16 have one kernel per function and its derivative where 16-byte accesses are possible. Strided operands
// and the other dtypes share a kernel that switches on the function at run time; the branch is uniform.

namespace weft::kernels::cuda {

namespace {

/// Results in 16 bits take GELU's short forms: erff alone would bind these kernels, not the bandwidth.
template <class T, Unary f>
inline constexpr bool kIsShort = sizeof(T) == 2 && kHasShortForm<f>;

template <class T, Unary f>
__device__ __forceinline__ Compute<T> value_of(Compute<T> x, Compute<T> a, Compute<T> b) {
  if constexpr (kIsShort<T, f>) {
    float value[1] = {x};
    short_value<f>(value);
    return value[0];
  } else {
    return unary_value<f>(x, a, b);
  }
}

template <class T, Unary f>
__device__ __forceinline__ Compute<T> gradient_of(Compute<T> dy, Compute<T> saved, Compute<T> a, Compute<T> b) {
  if constexpr (kIsShort<T, f>) {
    float value[1] = {dy};
    const float at[1] = {saved};
    multiply_by_short_slope<f>(value, at);
    return value[0];
  } else {
    return unary_gradient<f>(dy, saved, a, b);
  }
}

template <Unary f, class T>
struct Value {
  Compute<T> a, b;
  __device__ T operator()(T x) const { return to<T>(value_of<T, f>(from<Compute<T>>(x), a, b)); }
};

template <Unary f, class T>
struct Gradient {
  Compute<T> a, b;
  __device__ T operator()(T dy, T saved) const {
    return to<T>(gradient_of<T, f>(from<Compute<T>>(dy), from<Compute<T>>(saved), a, b));
  }
};

using AllUnary = std::make_integer_sequence<int, kUnaryCount>;

/// The result of a function that is not in the table: NaN, or 0 for integers.
template <class C>
inline constexpr C kNoValue = std::numeric_limits<C>::quiet_NaN();

template <class C, int f>
inline constexpr bool kIsDefined = std::is_floating_point_v<C> || unary_takes_integers(static_cast<Unary>(f));

template <class T, int f, class C>
__device__ C value_if_defined(C x, C a, C b) {
  if constexpr (kIsDefined<C, f>)
    return value_of<T, static_cast<Unary>(f)>(x, a, b);
  else
    return kNoValue<C>;
}

template <class T, class C, int... f>
__device__ C any_value(int which, C x, C a, C b, std::integer_sequence<int, f...>) {
  C y = kNoValue<C>;
  ((which == f ? (y = value_if_defined<T, f>(x, a, b), true) : false) || ...);
  return y;
}

template <class T, class C, int... f>
__device__ C any_gradient(int which, C dy, C saved, C a, C b, std::integer_sequence<int, f...>) {
  C dx = kNoValue<C>;
  ((which == f ? (dx = gradient_of<T, static_cast<Unary>(f)>(dy, saved, a, b), true) : false) || ...);
  return dx;
}

template <class T>
struct AnyValue {
  int f;
  Compute<T> a, b;
  __device__ T operator()(T x) const { return to<T>(any_value<T>(f, from<Compute<T>>(x), a, b, AllUnary{})); }
};

template <class T>
struct AnyGradient {
  int f;
  Compute<T> a, b;
  __device__ T operator()(T dy, T saved) const {
    return to<T>(any_gradient<T>(f, from<Compute<T>>(dy), from<Compute<T>>(saved), a, b, AllUnary{}));
  }
};

/// Whether the dtype has a kernel per function.
bool is_frequent(DType dtype) { return dtype == DType::f32 || dtype == DType::bf16; }

}  // namespace

void unary_forward(const Queue& queue, Unary f, const View& y, const View& x, UnaryArguments arguments) {
  WEFT_CHECK(y.dtype == x.dtype, "unary_forward: expected one dtype, got ", y, " and ", x);
  if (is_frequent(x.dtype)) {
    return with_dtype<float, bf16>(x.dtype, "unary_forward", [&]<class T>() {
      with_unary(f, [&]<Unary g>() {
        const Value<g, T> value{static_cast<float>(arguments.a), static_cast<float>(arguments.b)};
        const AnyValue<T> any{static_cast<int>(f), value.a, value.b};
        elementwise_with<T, T>(queue, "unary_forward", value, any, y, x);
      });
    });
  }
  WEFT_CHECK(is_floating(x.dtype) || unary_takes_integers(f), "unary_forward: expected a floating dtype, got ", x);
  with_dtype<f16, double, int64_t, int32_t>(x.dtype, "unary_forward", [&]<class T>() {
    using C = Compute<T>;
    elementwise_scalar<T, T>(queue, "unary_forward",
                             AnyValue<T>{static_cast<int>(f), static_cast<C>(arguments.a), static_cast<C>(arguments.b)},
                             y, x);
  });
}

void unary_backward(const Queue& queue, Unary f, const View& dx, const View& dy, const View& saved,
                    UnaryArguments arguments) {
  WEFT_CHECK(dx.dtype == dy.dtype && dx.dtype == saved.dtype, "unary_backward: expected one dtype, got ", dx, ", ", dy,
             " and ", saved);
  if (is_frequent(dx.dtype)) {
    return with_dtype<float, bf16>(dx.dtype, "unary_backward", [&]<class T>() {
      with_unary(f, [&]<Unary g>() {
        const Gradient<g, T> gradient{static_cast<float>(arguments.a), static_cast<float>(arguments.b)};
        const AnyGradient<T> any{static_cast<int>(f), gradient.a, gradient.b};
        elementwise_with<T, T, T>(queue, "unary_backward", gradient, any, dx, dy, saved);
      });
    });
  }
  with_dtype<f16, double>(dx.dtype, "unary_backward", [&]<class T>() {
    using C = Compute<T>;
    elementwise_scalar<T, T, T>(
        queue, "unary_backward",
        AnyGradient<T>{static_cast<int>(f), static_cast<C>(arguments.a), static_cast<C>(arguments.b)}, dx, dy, saved);
  });
}

}  // namespace weft::kernels::cuda
