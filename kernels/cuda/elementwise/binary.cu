// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/binary.h"

#include <limits>

#include "kernels/contracts/binary_math.h"
#include "kernels/cuda/convert.cuh"
#include "kernels/cuda/elementwise.cuh"
#include "kernels/with_bits.h"

// Geometry, ownership, cost: elementwise.cuh, whose inner dimension keeps 16-byte accesses for a broadcast row or
// scalar. binary_forward moves 3 elements per element, compare 2 and a byte, where 3 and a byte: 90% of the bandwidth.
// f32 and bf16 arithmetic has one kernel per function where 16-byte accesses are possible. Strided operands, the other
// dtypes and all comparisons share a kernel that switches on the function at run time; the branch is uniform.

namespace weft::kernels::cuda {

namespace {

template <Binary f, class T>
struct Value {
  Compute<T> alpha;
  __device__ T operator()(T a, T b) const {
    return to<T>(binary_value<f>(from<Compute<T>>(a), from<Compute<T>>(b), alpha));
  }
};

template <class C, int... f>
__device__ C any_value(int which, C a, C b, C alpha, std::integer_sequence<int, f...>) {
  C y = std::numeric_limits<C>::quiet_NaN();  // a value that no function gives; 0 in integers
  ((which == f ? (y = binary_value<static_cast<Binary>(f)>(a, b, alpha), true) : false) || ...);
  return y;
}

template <class T>
struct AnyValue {
  int f;
  Compute<T> alpha;
  __device__ T operator()(T a, T b) const {
    return to<T>(
        any_value(f, from<Compute<T>>(a), from<Compute<T>>(b), alpha, std::make_integer_sequence<int, kBinaryCount>{}));
  }
};

template <class C, int... f>
__device__ bool any_comparison(int which, C a, C b, std::integer_sequence<int, f...>) {
  bool y = false;
  ((which == f ? (y = compare_value<static_cast<Compare>(f)>(a, b), true) : false) || ...);
  return y;
}

template <class T>
struct AnyComparison {
  int f;
  __device__ bool operator()(T a, T b) const {
    return any_comparison(f, from<Compute<T>>(a), from<Compute<T>>(b),
                          std::make_integer_sequence<int, kCompareCount>{});
  }
};

template <class Bits>
struct Select {
  __device__ Bits operator()(bool condition, Bits a, Bits b) const { return condition ? a : b; }
};

template <class Bits>
void where_bits(const Queue& queue, const View& y, const View& condition, const View& a, const View& b) {
  elementwise<Bits, bool, Bits, Bits>(queue, "where", Select<Bits>{}, y, condition, a, b);
}

}  // namespace

void binary_forward(const Queue& queue, Binary f, const View& y, const View& a, const View& b, Number alpha) {
  WEFT_CHECK(y.dtype == a.dtype && y.dtype == b.dtype, "binary_forward: expected one dtype, got ", y, ", ", a, " and ",
             b);
  if (y.dtype == DType::f32 || y.dtype == DType::bf16) {
    return with_dtype<float, bf16>(y.dtype, "binary_forward", [&]<class T>() {
      with_binary(f, [&]<Binary g>() {
        const Value<g, T> value{static_cast<float>(alpha)};
        const AnyValue<T> any{static_cast<int>(f), value.alpha};
        elementwise_with<T, T, T>(queue, "binary_forward", value, any, y, a, b);
      });
    });
  }
  with_dtype<f16, double, int64_t, int32_t>(y.dtype, "binary_forward", [&]<class T>() {
    elementwise<T, T, T>(queue, "binary_forward", AnyValue<T>{static_cast<int>(f), static_cast<Compute<T>>(alpha)}, y,
                         a, b);
  });
}

void compare(const Queue& queue, Compare f, const View& y, const View& a, const View& b) {
  WEFT_CHECK(y.dtype == DType::boolean && a.dtype == b.dtype, "compare: expected bool from one dtype, got ", y, ", ", a,
             " and ", b);
  with_dtype<float, bf16, f16, double, int64_t, int32_t, uint8_t, bool>(a.dtype, "compare", [&]<class T>() {
    elementwise<bool, T, T>(queue, "compare", AnyComparison<T>{static_cast<int>(f)}, y, a, b);
  });
}

void where(const Queue& queue, const View& y, const View& condition, const View& a, const View& b) {
  WEFT_CHECK(condition.dtype == DType::boolean && y.dtype == a.dtype && y.dtype == b.dtype,
             "where: expected a bool condition and one dtype, got ", condition, ", ", y, ", ", a, " and ", b);
  with_bits(y.dtype, [&]<class Bits>() { where_bits<Bits>(queue, y, condition, a, b); });
}

}  // namespace weft::kernels::cuda
