// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/kernel.h"

namespace weft::kernels {

// One launch over a flat range of n elements (rank 1, contiguous): w and the states are f32 (or all f64), g is f32 or
// bf16 (f64 for f64), compute_copy is none or a bf16 range that receives the new weights rounded. `scalars` is an f32
// (f64 for f64 w) tensor on the device so that a captured graph sees new values: {lr, step, gradient_scale}; step
// counts from 1; the gradient is multiplied by gradient_scale first (1 / loss scale, or the clipping factor). Where
// gradient_scale is 0 or not finite the call changes nothing (a skipped step).

struct SgdArguments {
  double momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false, maximize = false;
};

/// d = g + weight_decay w; v = step == 1 ? d : momentum v + (1 - dampening) d; w -= lr (nesterov ? d + momentum v : v).
/// Without momentum velocity is none and w -= lr d. (Sutskever et al. 2013, in PyTorch's form.)
WEFT_KERNEL(sgd_step, const Queue& queue, const View& w, const View& velocity, const View& compute_copy, const View& g,
            const View& scalars, SgdArguments arguments);

struct AdamArguments {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool decoupled = false;  ///< AdamW (Loshchilov and Hutter 2019): w -= lr weight_decay w instead of L2 in g
  bool maximize = false;
};

/// Adam (Kingma and Ba 2015): m, v moving averages of g and g^2; w -= lr mhat / (sqrt(vhat) + eps).
WEFT_KERNEL(adam_step, const Queue& queue, const View& w, const View& m, const View& v, const View& compute_copy,
            const View& g, const View& scalars, AdamArguments arguments);

struct AdadeltaArguments {
  double rho = 0.9, eps = 1e-6, weight_decay = 0;
  bool maximize = false;
};

/// Adadelta (Zeiler 2012): s = rho s + (1-rho) g^2; d = sqrt(u + eps) / sqrt(s + eps) g; u = rho u + (1-rho) d^2; w -=
/// lr d.
WEFT_KERNEL(adadelta_step, const Queue& queue, const View& w, const View& square_average, const View& delta_average,
            const View& compute_copy, const View& g, const View& scalars, AdadeltaArguments arguments);

/// g *= min(1, max_norm / (norm + 1e-6)): norm is a device scalar (f32, f64 for f64 g).
WEFT_KERNEL(clip_gradient, const Queue& queue, const View& g, const View& norm, double max_norm);

}  // namespace weft::kernels
