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

}  // namespace

void layer_norm_forward(const Queue& queue, const View& y, const View& mean, const View& invstd, const View& sum,
                        const View& x, const View& residual, const View& weight, const View& bias, double eps) {
  check_rows("layer_norm_forward", x, y);
  if (residual) check_rows("layer_norm_forward", x, residual);
  const int64_t rows = x.sizes[0], C = x.sizes[1];
  if (rows == 0 || C == 0) return;
  with_dtype<float, bf16, f16, double>(x.dtype, "layer_norm_forward", [&]<class T>() {
    using A = Accumulate<T>;
    const RowNormForward<T> n{y.as<T>(),           mean.as<A>(),      invstd.as<A>(),
                              optional<T>(sum),    optional<T>(x),    optional<T>(residual),
                              optional<A>(weight), optional<A>(bias), static_cast<A>(eps)};
    row_norm_forward<true>(queue, "layer_norm_forward", n, rows, C);
  });
}

void layer_norm_backward(const Queue& queue, const View& dx, const View& dweight, const View& dbias, const View& dy,
                         const View& x, const View& weight, const View& mean, const View& invstd, const View& dx_in) {
  check_rows("layer_norm_backward", x, dy);
  const int64_t rows = x.sizes[0], C = x.sizes[1];
  if (C == 0) return;
  with_dtype<float, bf16, f16, double>(x.dtype, "layer_norm_backward", [&]<class T>() {
    using A = Accumulate<T>;
    const RowNormBackward<T> n{dx.as<T>(),          nullptr,           nullptr,
                               optional<T>(dy),     optional<T>(x),    optional<T>(dx_in),
                               optional<A>(weight), optional<A>(mean), optional<A>(invstd)};
    row_norm_backward<true>(queue, "layer_norm_backward", n, optional<A>(dweight), optional<A>(dbias), rows, C);
  });
}

void rms_norm_forward(const Queue& queue, const View& y, const View& invrms, const View& sum, const View& x,
                      const View& residual, const View& weight, double eps) {
  check_rows("rms_norm_forward", x, y);
  if (residual) check_rows("rms_norm_forward", x, residual);
  const int64_t rows = x.sizes[0], C = x.sizes[1];
  if (rows == 0 || C == 0) return;
  with_dtype<float, bf16, f16, double>(x.dtype, "rms_norm_forward", [&]<class T>() {
    using A = Accumulate<T>;
    const RowNormForward<T> n{y.as<T>(),           nullptr,        invrms.as<A>(),
                              optional<T>(sum),    optional<T>(x), optional<T>(residual),
                              optional<A>(weight), nullptr,        static_cast<A>(eps)};
    row_norm_forward<false>(queue, "rms_norm_forward", n, rows, C);
  });
}

void rms_norm_backward(const Queue& queue, const View& dx, const View& dweight, const View& dy, const View& x,
                       const View& weight, const View& invrms, const View& dx_in) {
  check_rows("rms_norm_backward", x, dy);
  const int64_t rows = x.sizes[0], C = x.sizes[1];
  if (C == 0) return;
  with_dtype<float, bf16, f16, double>(x.dtype, "rms_norm_backward", [&]<class T>() {
    using A = Accumulate<T>;
    const RowNormBackward<T> n{dx.as<T>(),          nullptr,        nullptr,
                               optional<T>(dy),     optional<T>(x), optional<T>(dx_in),
                               optional<A>(weight), nullptr,        optional<A>(invrms)};
    row_norm_backward<false>(queue, "rms_norm_backward", n, optional<A>(dweight), static_cast<A*>(nullptr), rows, C);
  });
}

}  // namespace weft::kernels::cuda
