// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/autograd.h"

// What the norms over rows share: layer_norm and rms_norm, alone and after a residual.

namespace weft {

/// The dtype of a norm's weights and statistics.
inline DType norm_dtype(const Tensor& x) { return x.dtype() == DType::f64 ? DType::f64 : DType::f32; }

inline void check_norm_input(const char* op, const Tensor& x) {
  WEFT_CHECK(x.defined() && x.is_floating() && x.dim() >= 1 && x.size(-1) > 0, op,
             ": expected a floating input [..., C], got ", x);
}

inline void check_norm_vector(const char* op, const char* what, const Tensor& vector, const Tensor& x) {
  WEFT_CHECK(
      !vector.defined() || (vector.dim() == 1 && vector.size(0) == x.size(-1) && vector.dtype() == norm_dtype(x) &&
                            vector.device() == x.device() && vector.is_contiguous()),
      op, ": expected ", what, " ", norm_dtype(x), "[", x.size(-1), "] for input ", x, ", got ", vector);
}

/// The residual, dense and in x's dtype.
inline Tensor norm_residual(const char* op, const Tensor& residual, const Tensor& x) {
  WEFT_CHECK(
      residual.defined() && residual.is_floating() && residual.sizes() == x.sizes() && residual.device() == x.device(),
      op, ": expected a floating residual of the input's sizes ", x, ", got ", residual);
  return residual.to(x.dtype()).contiguous();
}

/// `sum`, whose memory the norm's kernel will fill with x + residual.
inline Tensor recorded_sum(const Tensor& sum, const Tensor& x, const Tensor& residual) {
  return differentiable(sum, "add", {x, residual}, [](const Tensor& dy) { return Grads{dy, dy}; });
}

}  // namespace weft
