// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/layer_norm.h"

#include "kernels/cuda/norm/row_norm.cuh"

// Kernels, geometry and cost: row_norm.cuh.

namespace weft::kernels::cuda {

namespace {

template <class T>
T* optional(const View& view) {
  return view ? view.as<T>() : nullptr;
}

template <bool kCentred>
void forward(const Queue& queue, const char* name, const View& y, const View& mean, const View& invstd, const View& sum,
             const View& x, const View& residual, const View& weight, const View& bias, double eps) {
  check_rows(name, x, y, /*beside_f32=*/true);
  if (residual) check_rows(name, x, residual, /*beside_f32=*/true);
  WEFT_CHECK(!residual || y.dtype == x.dtype || y.dtype == residual.dtype, name,
             ": expected a residual of y's 16 bits, got ", residual, " for ", y);
  const int64_t rows = x.sizes[0], C = x.sizes[1];
  if (rows == 0 || C == 0) return;
  with_dtype<float, bf16, f16, double>(x.dtype, name, [&]<class T>() {
    using A = Accumulate<T>;
    const auto run = [&]<class R, class Y>() {
      const RowNormForward<T, R, Y> n{y.as<Y>(),           optional<A>(mean), invstd.as<A>(),
                                      optional<T>(sum),    optional<T>(x),    optional<R>(residual),
                                      optional<A>(weight), optional<A>(bias), static_cast<A>(eps)};
      row_norm_forward<kCentred>(queue, name, n, rows, C);
    };
    if constexpr (std::is_same_v<T, float>) {
      const DType low = residual && residual.dtype != x.dtype ? residual.dtype : y.dtype;
      const bool low_y = y.dtype == low;
      if (low == DType::bf16) return low_y ? run.template operator()<bf16, bf16>() : run.template operator()<bf16, T>();
      if (low == DType::f16) return low_y ? run.template operator()<f16, f16>() : run.template operator()<f16, T>();
    }
    run.template operator()<T, T>();
  });
}

template <bool kCentred>
void backward(const Queue& queue, const char* name, const View& dx, const View& dweight, const View& dbias,
              const View& dy, const View& x, const View& weight, const View& mean, const View& invstd,
              const View& dx_in) {
  check_rows(name, x, dy);
  const int64_t rows = x.sizes[0], C = x.sizes[1];
  if (C == 0) return;
  with_dtype<float, bf16, f16, double>(x.dtype, name, [&]<class T>() {
    using A = Accumulate<T>;
    const RowNormBackward<T> n{dx.as<T>(),          nullptr,           nullptr,
                               optional<T>(dy),     optional<T>(x),    optional<T>(dx_in),
                               optional<A>(weight), optional<A>(mean), optional<A>(invstd)};
    row_norm_backward<kCentred>(queue, name, n, optional<A>(dweight), optional<A>(dbias), rows, C);
  });
}

}  // namespace

void layer_norm_forward(const Queue& queue, const View& y, const View& mean, const View& invstd, const View& sum,
                        const View& x, const View& residual, const View& weight, const View& bias, double eps) {
  forward<true>(queue, "layer_norm_forward", y, mean, invstd, sum, x, residual, weight, bias, eps);
}

void layer_norm_backward(const Queue& queue, const View& dx, const View& dweight, const View& dbias, const View& dy,
                         const View& x, const View& weight, const View& mean, const View& invstd, const View& dx_in) {
  backward<true>(queue, "layer_norm_backward", dx, dweight, dbias, dy, x, weight, mean, invstd, dx_in);
}

void rms_norm_forward(const Queue& queue, const View& y, const View& invrms, const View& sum, const View& x,
                      const View& residual, const View& weight, double eps) {
  forward<false>(queue, "rms_norm_forward", y, View::none(), invrms, sum, x, residual, weight, View::none(), eps);
}

void rms_norm_backward(const Queue& queue, const View& dx, const View& dweight, const View& dy, const View& x,
                       const View& weight, const View& invrms, const View& dx_in) {
  backward<false>(queue, "rms_norm_backward", dx, dweight, View::none(), dy, x, weight, View::none(), invrms, dx_in);
}

}  // namespace weft::kernels::cuda
