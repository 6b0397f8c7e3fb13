// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>

#include "core/tensor.h"

namespace weft {

/// y = (x - mean) / sqrt(var + eps) weight + bias over the last dimension of x [..., C] (Ba et al. 2016). weight, bias
/// [C] may be undefined; they are f32 (f64 for f64 x) whatever x is. `y_dtype`: x's, or bf16 or f16 of an f32 x: the
/// bits of `.to(y_dtype)`, on a GPU in the same pass over memory. Errors: sizes or dtypes that do not fit.
Tensor layer_norm(const Tensor& x, const Tensor& weight = {}, const Tensor& bias = {}, double eps = 1e-5,
                  std::optional<DType> y_dtype = {});

/// A transformer block reads both: the new residual stream and its norm.
struct NormedSum {
  Tensor sum;  ///< x + residual
  Tensor y;    ///< layer_norm(sum)
};

/// sum = x + residual and y = layer_norm(sum) in one pass over memory; in backward the gradient that came to sum from
/// elsewhere is added in the norm's own pass. x and residual have the same sizes; residual is taken in x's dtype (on a
/// GPU, 16 bits beside an f32 x in the same pass). Errors: as layer_norm(), and of sizes that differ.
NormedSum add_layer_norm(const Tensor& x, const Tensor& residual, const Tensor& weight = {}, const Tensor& bias = {},
                         double eps = 1e-5, std::optional<DType> y_dtype = {});

/// y = x / sqrt(mean(x^2) + eps) weight over the last dimension of x [..., C] (Zhang and Sennrich 2019). weight [C] may
/// be undefined; it is f32 (f64 for f64 x) whatever x is. `y_dtype`: as layer_norm(). Errors: sizes or dtypes that do
/// not fit.
Tensor rms_norm(const Tensor& x, const Tensor& weight = {}, double eps = 1e-6, std::optional<DType> y_dtype = {});

/// sum = x + residual and y = rms_norm(sum) in one pass over memory; as add_layer_norm().
NormedSum add_rms_norm(const Tensor& x, const Tensor& residual, const Tensor& weight = {}, double eps = 1e-6,
                       std::optional<DType> y_dtype = {});

/// The norm of each image and each of `groups` runs of channels of x [N, ..., C]: (x - mean) / sqrt(var + eps) weight +
/// bias, weight and bias [C] (Wu and He 2018). Groups of one channel are instance norm. weight and bias are f32 (f64
/// for f64 x), or undefined. Errors: channels that do not divide into groups, sizes or dtypes that do not fit.
Tensor group_norm(const Tensor& x, Integer groups, const Tensor& weight = {}, const Tensor& bias = {},
                  double eps = 1e-5);

/// g v / |v|, the norm over all dimensions but the first: v [O, ...], g [O, 1, …] (Salimans and Kingma 2016). Errors:
/// sizes that do not fit.
Tensor weight_norm(const Tensor& v, const Tensor& g);

}  // namespace weft
