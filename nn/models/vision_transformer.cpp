// SPDX-License-Identifier: Apache-2.0
#include "nn/models/vision_transformer.h"

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/concat.h"
#include "core/text.h"

namespace weft::nn {
namespace {

struct ViTSize {
  const char* name;
  int64_t width, depth, heads, patch, image;
};

constexpr ViTSize kViTSizes[] = {
    {"vit_tiny4", 192, 6, 3, 4, 32},
    {"vit_small16", 384, 12, 6, 16, 224},
    {"vit_base16", 768, 12, 12, 16, 224},
    {"vit_large16", 1024, 24, 16, 16, 224},
};

TransformerBlockOptions block_options(const VisionTransformerOptions& options, int64_t i) {
  const double share = options.depth > 1 ? static_cast<double>(i) / static_cast<double>(options.depth - 1) : 1;
  return {.width = options.width,
          .heads = options.heads,
          .hidden = options.hidden > 0 ? options.hidden : 4 * options.width,
          .feed_forward = options.feed_forward,
          .layer_scale = options.layer_scale,
          .drop_path = options.drop_path * share};
}

Tensor drawn(const Shape& sizes, double std) {
  const Tensor x = Tensor::empty(sizes);
  init_normal_(x, std);
  return x.requires_grad_();
}

int64_t grid_of(const VisionTransformerOptions& options) {
  WEFT_CHECK(options.patch > 0 && options.image >= options.patch && options.image % options.patch == 0,
             "VisionTransformer: expected an image side that is a multiple of the patch, got ", options.image, " and ",
             options.patch);
  WEFT_CHECK(options.depth > 0, "VisionTransformer: expected at least one block, got ", options.depth);
  return options.image / options.patch;
}

}  // namespace

VisionTransformer::VisionTransformer(const VisionTransformerOptions& given)
    : options(given),
      cls_token(drawn({1, 1, options.width}, 1e-6)),
      pos_embed(drawn({1, 1 + grid_of(options) * grid_of(options), options.width}, 0.02)),
      patch_embed(options.patch, options.channels, options.width),
      norm(options.width, 1e-6) {
  if (options.registers > 0) register_tokens = drawn({1, options.registers, options.width}, 1e-6);
  if (options.mask_token) mask_token = Tensor::zeros({1, options.width});
  for (int64_t i = 0; i < options.depth; ++i)
    blocks.push_back(std::make_shared<TransformerBlock>(block_options(options, i)));
  if (options.classes > 0)
    head = std::make_shared<Linear>(options.width, options.classes, LinearOptions{.init = Init::transformer});
}

Tensor VisionTransformer::patch_positions(Size2d grid) const {
  const int64_t learned = grid_of(options);
  const Tensor positions = pos_embed.slice(1, 1, learned * learned);
  if (grid.h == learned && grid.w == learned) return positions;
  if (resized_.grid.h != grid.h || resized_.grid.w != grid.w || resized_.weights.rows.device() != pos_embed.device()) {
    Resize2dOptions how{.interpolation = Interpolation::bicubic};
    if (options.position_resize == PositionResize::by_size) {
      how.antialias = true;
    } else {
      how.scale.h = (static_cast<double>(grid.h) + 0.1) / static_cast<double>(learned);
      how.scale.w = (static_cast<double>(grid.w) + 0.1) / static_cast<double>(learned);
    }
    const DType dtype = pos_embed.dtype() == DType::f64 ? DType::f64 : DType::f32;
    resized_ = {grid, resize2d_weights({learned, learned}, grid, how, dtype, pos_embed.device())};
  }
  const Tensor old = positions.reshape({1, learned, learned, options.width}).to(resized_.weights.rows.dtype());
  return resize2d(old, resized_.weights).reshape({1, grid.h * grid.w, options.width}).to(pos_embed.dtype());
}

Tensor VisionTransformer::tokens_of(const Tensor& x) const {
  const Tensor patches = patch_embed(x);
  const Shape one{x.size(0), 1, options.width};
  const Tensor placed =
      patches + patch_positions({x.size(1) / options.patch, x.size(2) / options.patch}).to(patches.dtype());
  std::vector<Tensor> tokens{(cls_token + pos_embed.slice(1, 0, 1)).to(patches.dtype()).expand(one)};
  if (register_tokens.defined())
    tokens.push_back(register_tokens.to(patches.dtype()).expand({x.size(0), options.registers, options.width}));
  tokens.push_back(placed);
  return concat(tokens, 1);
}

Tensor VisionTransformer::run_block(size_t i, const Tensor& tokens) const {
  if (!options.recompute || !grad_enabled()) return (*blocks[i])(tokens);
  return checkpoint([block = blocks[i]](const std::vector<Tensor>& x) { return (*block)(x[0]); }, {tokens});
}

VisionFeatures VisionTransformer::features_of(const Tensor& tokens) const {
  const Tensor y = norm(tokens);
  const int64_t in_front = 1 + options.registers;
  return {.class_token = y.select(1, 0),
          .registers = options.registers > 0 ? y.slice(1, 1, options.registers) : Tensor(),
          .patch_tokens = y.slice(1, in_front, y.size(1) - in_front)};
}

VisionFeatures VisionTransformer::forward_features(const Tensor& x) const { return last_blocks(x, 1).front(); }

std::vector<VisionFeatures> VisionTransformer::last_blocks(const Tensor& x, int64_t count) const {
  WEFT_CHECK(count >= 1 && count <= options.depth, "VisionTransformer: expected 1 to ", options.depth, " blocks, got ",
             count);
  std::vector<VisionFeatures> features;
  Tensor tokens = tokens_of(x);
  for (size_t i = 0; i < blocks.size(); ++i) {
    tokens = run_block(i, tokens);
    if (static_cast<int64_t>(i) >= options.depth - count) features.push_back(features_of(tokens));
  }
  return features;
}

Tensor VisionTransformer::forward(const Tensor& x) const {
  Tensor tokens = tokens_of(x);
  for (size_t i = 0; i < blocks.size(); ++i) tokens = run_block(i, tokens);
  const Tensor class_token = norm(tokens.select(1, 0));  // the norm is each token's own: the others' are not needed
  return head ? (*head)(class_token) : class_token;
}

void VisionTransformer::fields(Visitor& v) {
  v("cls_token", cls_token);
  v("pos_embed", pos_embed);
  v("register_tokens", register_tokens);
  v("mask_token", mask_token);
  v("patch_embed", patch_embed);
  v("blocks", blocks);
  v("norm", norm);
  v("head", head);
}

std::vector<std::string> vit_names() {
  std::vector<std::string> names;
  for (const ViTSize& size : kViTSizes) names.emplace_back(size.name);
  return names;
}

VisionTransformerOptions vit_options(const std::string& name, int64_t classes) {
  for (const ViTSize& size : kViTSizes)
    if (name == size.name)
      return {.width = size.width,
              .depth = size.depth,
              .heads = size.heads,
              .patch = size.patch,
              .image = size.image,
              .classes = classes};
  fail("vit_options: no transformer is called '", name, "'.", suggestion(name, vit_names()));
}

}  // namespace weft::nn
