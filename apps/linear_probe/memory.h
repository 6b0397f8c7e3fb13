// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "kernels/dtype.h"
#include "nn/models/vision_transformer.h"

namespace weft::linear_probe {

/// A step of fine-tuning on one device, without sharding.
struct StepShape {
  int64_t batch = 256;  ///< images
  int64_t side = 224;   ///< edge of an image, in pixels
  int64_t classes = 100;
  DType precision = DType::bf16;  ///< dtype of products and of activations for backward; weights are f32
};

/// Bytes that a step needs at its fullest, by what they are. With a = bytes of an element in the step's precision, P
/// parameters, and for each of the T tokens of N images: W the width, H the width inside the feed-forward.
///
/// weights, gradients 4 P each; moments 8 P (Adam's two); copies a P where the precision is lower than f32.
/// A block keeps per token, for its backward:
///     a W   each: its input, norm1, attention, the residual sum, norm2, and with LayerScale each branch that is scaled
///           in a pass of its own (nn::Linear::takes_factors()); of the others the scaled weight is kept.
///   3 a W   query, key and value.
///   2 a H   inside an MLP: before and after GELU; SwiGLU: 5 a H (both halves, sigmoid, two products).
///   4 heads + 16   attention's log-sums, mean and deviation of both norms.
/// blocks: that times N T depth; with recomputation a W N T depth for the inputs alone, and one block's rest, which
/// backward computes again. images: N side^2 channels, in f32 and as patches. working: backward's own memory at its
/// peak, in the last block's feed-forward: a (2 W + H) N T; with SwiGLU a (2 W + 3 H) N T.
///
/// The allocator rounds each tensor up by at most an eighth. Short-lived gradients of single weights, the log-sums of
/// the loss and the like are left out.
struct StepMemory {
  int64_t weights = 0, gradients = 0, moments = 0, copies = 0, blocks = 0, images = 0, working = 0;
  int64_t total() const { return weights + gradients + moments + copies + blocks + images + working; }
};

/// With the model's own `recompute`. Errors: a side that is no multiple of the patch.
StepMemory step_memory(const nn::VisionTransformerOptions& model, const StepShape& step);

/// A table of a step with and without recomputation, and the largest batch that fits 40, 80 and 141 GB.
std::string explain_memory(const std::string& name, nn::VisionTransformerOptions model, const StepShape& step);

}  // namespace weft::linear_probe
