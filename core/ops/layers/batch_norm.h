// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

struct BatchNormOptions {
  bool training = false;  ///< statistics of the batch (else the running ones)
  double eps = 1e-5;
  double momentum = 0.1;   ///< weight of this batch in the running statistics
  bool relu = false;       ///< y = max(0, …) in the same pass
  Tensor residual = {};    ///< added after the norm and before the ReLU, of x's sizes; may be undefined
  Tensor statistics = {};  ///< x's when training, as conv2d_statistics() gives them; undefined: found here

  /// Memory for the forward's mask (kernels/contracts/batch_norm.h), which backward reads in place of y; undefined
  /// where backward reads y, or x alone. `like`: the residual in x's dtype.
  Tensor mask_of(const Tensor& x, const Tensor& like) const;
};

/// y = relu?((x - mean) / sqrt(var + eps) weight + bias + residual?) per channel of x. x is [N, H, W, C] or [N, C]
/// (Ioffe and Szegedy 2015). weight, bias [C] may be undefined. running_mean, running_var [C] move when training (the
/// variance by the unbiased estimate; not while checkpoint() computes again), and may be undefined then. Vectors are
/// f32 (f64 for f64 x) whatever x is. Errors: sizes or dtypes that do not fit; eps < 0; one value or eps 0 in training.
Tensor batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                  const Tensor& running_var, const BatchNormOptions& options = {});

/// Throws what batch_norm() throws of arguments that do not fit each other, for norms of other statistics (several
/// ranks').
void check_batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                      const Tensor& running_var, const BatchNormOptions& options);

}  // namespace weft
