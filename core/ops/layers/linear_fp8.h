// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "core/tensor.h"
#include "kernels/contracts/activation.h"

namespace weft {

/// How the scales of 8-bit numbers follow from earlier steps (delayed scaling): the largest magnitude of the last
/// `history` steps becomes the largest number of the format over 2^margin, by a power of two.
struct Fp8Recipe {
  int history = 16;
  int margin = 0;
};

/// An FP8 linear layer's history of its input, its weight and the gradient of its result, in this order.
struct Fp8Scaling {
  /// Errors: a history below 1.
  explicit Fp8Scaling(Fp8Recipe recipe = {});

  Fp8Recipe recipe;
  Tensor amaxes;         ///< f32 [3, history]: largest magnitudes of the steps before, the last one first
  Tensor latest;         ///< f32 [3]: those since the last forward; the next one takes them over
  int64_t measured = 0;  ///< bit i: tensor i has been seen. The first time its own largest magnitude gives the scale
  Tensor scale;          ///< f32 [3], of the last forward that recorded; follows from amaxes
};

/// y = f(x weight^T + bias) as linear(), its three products on numbers of 8 bits: x and weight in e4m3, the gradient of
/// y in e5m2, each with one scale (Micikevicius et al. 2022, "FP8 formats for deep learning"); sums in f32; y in bf16.
/// A value beyond its scale's range is clipped, and the next scale covers its magnitude. `records`: this is training,
/// so magnitudes are recorded and the forward moves the history on, but for that of a checkpoint()'s second run.
/// Defined in linear.cpp. Errors: as linear; what is not bf16, under autocast or by itself; scaling on another device.
Tensor linear_fp8(const Tensor& x, const Tensor& weight, const Tensor& bias, const std::shared_ptr<Fp8Scaling>& scaling,
                  bool records, kernels::Activation activation = kernels::Activation::none);

}  // namespace weft
