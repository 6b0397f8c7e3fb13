// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/special.h"

#include "kernels/contracts/special_math.h"
#include "kernels/cuda/convert.cuh"
#include "kernels/cuda/elementwise.cuh"

// Geometry and ownership: elementwise.cuh. One kernel per dtype switches on the function; the branch is uniform. The 30
// to 1,000 flops of an element are f64: they bind the kernel, not the bandwidth. These functions are rare in a step.

namespace weft::kernels::cuda {
namespace {

struct Math {
  static __device__ double lgamma(double x) { return ::lgamma(x); }
};

template <class T>
struct Value {
  Special f;
  int order;
  __device__ T operator()(T x) const {
    return to<T>(static_cast<Compute<T>>(special_value<Math>(f, static_cast<double>(from<Compute<T>>(x)), order)));
  }
};

}  // namespace

void special_forward(const Queue& queue, Special f, const View& y, const View& x, int order) {
  WEFT_CHECK(y.dtype == x.dtype, "special_forward: expected one dtype, got ", y, " and ", x);
  with_dtype<float, double, bf16, f16>(x.dtype, "special_forward", [&]<class T>() {
    elementwise_scalar<T, T>(queue, "special_forward", Value<T>{f, order}, y, x);
  });
}

}  // namespace weft::kernels::cuda
