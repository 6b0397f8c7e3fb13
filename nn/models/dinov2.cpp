// SPDX-License-Identifier: Apache-2.0
#include "nn/models/dinov2.h"

#include "core/text.h"

namespace weft::nn {
namespace {

struct Dinov2Size {
  const char* name;
  int64_t width, depth, heads;
  int64_t swiglu_hidden = 0;  ///< 0: an Mlp of 4 width
};

// The giant's hidden width is 2/3 of 4 width, up to a multiple of 8: its three matrices weigh as much as two.
constexpr Dinov2Size kDinov2Sizes[] = {
    {"dinov2_vits14", 384, 12, 6},
    {"dinov2_vitb14", 768, 12, 12},
    {"dinov2_vitl14", 1024, 24, 16},
    {"dinov2_vitg14", 1536, 40, 24, 4096},
};

}  // namespace

std::vector<std::string> dinov2_names() {
  std::vector<std::string> names;
  for (const Dinov2Size& size : kDinov2Sizes)
    for (const char* ending : {"", "_reg"}) names.push_back(std::string(size.name) + ending);
  return names;
}

VisionTransformerOptions dinov2_options(const std::string& name) {
  for (const Dinov2Size& size : kDinov2Sizes) {
    const bool with_registers = name == std::string(size.name) + "_reg";
    if (!with_registers && name != size.name) continue;
    return {.width = size.width,
            .depth = size.depth,
            .heads = size.heads,
            .patch = 14,
            .image = 518,
            .classes = 0,
            .hidden = size.swiglu_hidden,
            .feed_forward = size.swiglu_hidden > 0 ? FeedForward::swiglu : FeedForward::mlp,
            .registers = with_registers ? 4 : 0,
            .layer_scale = 1,
            .mask_token = true,
            .position_resize = with_registers ? PositionResize::by_size : PositionResize::by_scale};
  }
  fail("dinov2: no backbone is called '", name, "'.", suggestion(name, dinov2_names()));
}

std::shared_ptr<VisionTransformer> dinov2(const std::string& name) {
  return std::make_shared<VisionTransformer>(dinov2_options(name));
}

}  // namespace weft::nn
