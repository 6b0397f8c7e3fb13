// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "nn/models/vision_transformer.h"

namespace weft::nn {

/// The names that dinov2() knows: dinov2_vits14, dinov2_vits14_reg, …, dinov2_vitg14_reg.
std::vector<std::string> dinov2_names();

/// The options of a backbone of Oquab et al. 2023, "DINOv2: Learning robust visual features without supervision";
/// `_reg`: with four registers (Darcet et al. 2023). Patches of 14 pixels, positions for images of 518, no head.
/// Errors: an unknown name, with the nearest known one.
VisionTransformerOptions dinov2_options(const std::string& name);

/// The backbone itself, with fresh weights; load_state_dict() takes the published ones. x [N, H, W, 3] to the class
/// token [N, width], width 384 (S), 768 (B), 1024 (L), 1536 (g).
std::shared_ptr<VisionTransformer> dinov2(const std::string& name);

}  // namespace weft::nn
