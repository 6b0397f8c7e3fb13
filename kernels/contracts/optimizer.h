// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/kernel.h"

namespace weft::kernels {

// One launch over a flat range of n elements (rank 1, contiguous): w and the states are f32 (or all f64), g is f32 or
// bf16 (f64 for f64). compute_copy is none or a bf16 range that receives the new weights rounded. `scalars` is an f32
// (f64 for f64 w) tensor on the device, so that a captured graph sees new values: {lr, step, gradient_scale}; step
// counts from 1; the gradient is first multiplied by gradient_scale (1 / loss scale, or the clipping factor). If
// gradient_scale is 0 or not finite, the call changes nothing (a skipped step). The rules are in optimizer_rules.h.

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

/// Adam (Kingma and Ba 2015): m, v moving averages of g and g^2; w -= lr mhat / (sqrt(vhat) + eps). `largest`: the
/// largest v so far, which replaces v (AMSGrad; Reddi et al. 2018), or none.
WEFT_KERNEL(adam_step, const Queue& queue, const View& w, const View& m, const View& v, const View& largest,
            const View& compute_copy, const View& g, const View& scalars, AdamArguments arguments);

struct AdadeltaArguments {
  double rho = 0.9, eps = 1e-6, weight_decay = 0;
  bool maximize = false;
};

/// Adadelta (Zeiler 2012): s = rho s + (1-rho) g^2; d = sqrt(u + eps) / sqrt(s + eps) g; u = rho u + (1-rho) d^2; w -=
/// lr d.
WEFT_KERNEL(adadelta_step, const Queue& queue, const View& w, const View& square_average, const View& delta_average,
            const View& compute_copy, const View& g, const View& scalars, AdadeltaArguments arguments);

struct RmspropArguments {
  double alpha = 0.99, eps = 1e-8, weight_decay = 0, momentum = 0;
  bool maximize = false;
};

/// RMSprop (Hinton 2012, lecture 6e, in PyTorch's form): s = alpha s + (1 - alpha) g^2; d = g / (sqrt(s) + eps); with a
/// velocity d = v = momentum v + d; w -= lr d. With a gradient_average a (Graves 2013, centred) sqrt(s - a^2) replaces
/// sqrt(s).
WEFT_KERNEL(rmsprop_step, const Queue& queue, const View& w, const View& square_average, const View& velocity,
            const View& gradient_average, const View& compute_copy, const View& g, const View& scalars,
            RmspropArguments arguments);

struct AdagradArguments {
  double lr_decay = 0, eps = 1e-10, weight_decay = 0;
  bool maximize = false;
};

/// Adagrad (Duchi et al. 2011): s += g^2; w -= lr / (1 + (step - 1) lr_decay) g / (sqrt(s) + eps).
WEFT_KERNEL(adagrad_step, const Queue& queue, const View& w, const View& sum, const View& compute_copy, const View& g,
            const View& scalars, AdagradArguments arguments);

struct LionArguments {
  double beta1 = 0.9, beta2 = 0.99, weight_decay = 0;
  bool maximize = false;
};

/// Lion (Chen et al. 2023): w -= lr (sign(beta1 m + (1 - beta1) g) + weight_decay w); m = beta2 m + (1 - beta2) g.
WEFT_KERNEL(lion_step, const Queue& queue, const View& w, const View& m, const View& compute_copy, const View& g,
            const View& scalars, LionArguments arguments);

// LARS and LAMB need whole parameters. The ranges are whole flat buffers, and `chunks`, i64 [count, 3], maps elements
// to parameters: {first element, a multiple of 32; end; parameter}, in order. Elements outside all chunks are
// unchanged.

/// Maximum elements of a chunk, the work of one block.
inline constexpr int64_t kChunkElements = 16384;

/// squares[p] = sum of x^2 over the chunks of parameter p (0 without chunks). `firsts`, i64 [parameters + 1]: parameter
/// p has chunks firsts[p] … firsts[p + 1] - 1. x: f32, bf16 or f64; squares and partial [chunks], which is scratch: f32
/// (f64 for f64). The order of the sums depends on the chunks alone.
WEFT_KERNEL(parameter_squares, const Queue& queue, const View& squares, const View& partial, const View& x,
            const View& chunks, const View& firsts);

struct LarsArguments {
  double momentum = 0.9, dampening = 0, weight_decay = 0;
  bool nesterov = false, maximize = false;
  double trust = 0.001, eps = 1e-8;
};

/// sgd_step() on a gradient that is scaled per parameter: d = trust |w| / (|g| + weight_decay |w| + eps) (g +
/// weight_decay w) (You et al. 2017); the factor is 1 if w or g is 0, or if the squares are none.
WEFT_KERNEL(lars_step, const Queue& queue, const View& w, const View& velocity, const View& compute_copy, const View& g,
            const View& scalars, const View& chunks, const View& w_squares, const View& g_squares,
            LarsArguments arguments);

struct LambArguments {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-6, weight_decay = 0;
  bool clip_trust = false;  ///< no parameter moves faster than by lr u
  bool maximize = false;
};

/// u = mhat / (sqrt(vhat) + eps) + weight_decay w, with mhat and vhat as in adam_step().
WEFT_KERNEL(lamb_direction, const Queue& queue, const View& u, const View& m, const View& v, const View& w,
            const View& g, const View& scalars, const View& chunks, LambArguments arguments);
/// w -= lr |w| / |u| u for each parameter (You et al. 2020); w -= lr u if w or u is 0, or if the squares are none.
WEFT_KERNEL(lamb_step, const Queue& queue, const View& w, const View& compute_copy, const View& u, const View& scalars,
            const View& chunks, const View& w_squares, const View& u_squares, LambArguments arguments);

/// g *= min(1, max_norm / (norm + 1e-6)): norm is a device scalar (f32, f64 for f64 g).
WEFT_KERNEL(clip_gradient, const Queue& queue, const View& g, const View& norm, double max_norm);

// Averages of weights over training steps; flat ranges of n elements (rank 1, contiguous), all f32 or all f64.

struct EmaArguments {
  double decay = 0.999;
  bool warmup = false;  ///< the decay of update t (from 0) is at most (1 + t) / (10 + t)
};

/// average += (1 - d) (w - average), d the decay; `count` holds t, the updates so far, on the device, in the dtype of
/// w.
WEFT_KERNEL(ema_step, const Queue& queue, const View& average, const View& w, const View& count,
            EmaArguments arguments);

/// Swaps the values of two ranges.
WEFT_KERNEL(exchange, const Queue& queue, const View& a, const View& b);

}  // namespace weft::kernels
