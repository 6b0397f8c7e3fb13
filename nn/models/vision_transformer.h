// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/ops/layers/resize2d.h"
#include "nn/conv.h"
#include "nn/transformer.h"

namespace weft::nn {

/// How the grid of learned positions becomes that of another image size; always bicubic, in f32.
enum class PositionResize {
  by_scale,  ///< the scale is (new + 0.1) / old, no antialias: DINOv2 without registers
  by_size,   ///< the scale is new / old, antialiased: DINOv2 with registers
};

struct VisionTransformerOptions {
  int64_t width = 384, depth = 12, heads = 6;
  int64_t patch = 16;      ///< pixels
  int64_t image = 224;     ///< the side of the images for which positions are learned
  int64_t channels = 3;    ///< channels of the images
  int64_t classes = 1000;  ///< rows of `head`; 0: no head, forward() gives the class token
  int64_t hidden = 0;      ///< width inside the feed-forward; 0: 4 width
  FeedForward feed_forward = FeedForward::mlp;
  int64_t registers = 0;    ///< tokens beside the class token that hold no patch (Darcet et al. 2023)
  double layer_scale = 0;   ///< how the factors of LayerScale begin; 0: none
  double drop_path = 0;     ///< rate of the last block; grows from 0 at the first one
  bool mask_token = false;  ///< a parameter of DINOv2's files that only its own training uses
  PositionResize position_resize = PositionResize::by_size;
  bool recompute = false;  ///< backward computes each block a second time: memory for time
};

/// Result of forward_features(), after the last norm.
struct VisionFeatures {
  Tensor class_token;   ///< [N, width]
  Tensor registers;     ///< [N, registers, width]; undefined without registers
  Tensor patch_tokens;  ///< [N, patches, width]
};

/// The vision transformer of Dosovitskiy et al. 2020, "An image is worth 16x16 words", with the parts of DINOv2 (Oquab
/// et al. 2023) under DINOv2's parameter names. x is [N, H, W, channels], H and W multiples of the patch. The result is
/// logits [N, classes], or the class token [N, width] without a head.
struct VisionTransformer : Module {
  VisionTransformerOptions options;
  Tensor cls_token;        ///< [1, 1, width]
  Tensor pos_embed;        ///< [1, 1 + grid, width], the class token's first
  Tensor register_tokens;  ///< [1, registers, width]
  Tensor mask_token;       ///< [1, width]; not trained here
  PatchEmbed patch_embed;
  std::vector<std::shared_ptr<TransformerBlock>> blocks;
  LayerNorm norm;
  std::shared_ptr<Linear> head;

  explicit VisionTransformer(const VisionTransformerOptions& options);
  Tensor forward(const Tensor& x) const override;
  /// All tokens after the last norm. As last_blocks(), not for a model that is sharded: only operator() gathers it.
  VisionFeatures forward_features(const Tensor& x) const;
  /// As forward_features() after each of the last `count` blocks, the last one last. Errors: count outside 1 … depth.
  std::vector<VisionFeatures> last_blocks(const Tensor& x, int64_t count) const;
  void fields(Visitor& v) override;

 private:
  /// Weights of the last resize of positions: a training run has one image size.
  struct Resized {
    Size2d grid = 0;
    Resize2dWeights weights;
  };
  Tensor tokens_of(const Tensor& x) const;
  Tensor patch_positions(Size2d grid) const;
  VisionFeatures features_of(const Tensor& tokens) const;
  Tensor run_block(size_t i, const Tensor& tokens) const;

  mutable Resized resized_;
};

/// The names that vit_options() knows: vit_tiny4 (for images of about 32x32: 2.7 M parameters), vit_small16,
/// vit_base16, vit_large16 (22.1, 86.6, 304.3 M).
std::vector<std::string> vit_names();

/// The options of a transformer by its name: size of its patch, its blocks, images of 224 (vit_tiny4: 32) pixels.
/// Errors: an unknown name, with the nearest known one.
VisionTransformerOptions vit_options(const std::string& name, int64_t classes = 1000);

}  // namespace weft::nn
