// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <vector>

#include "nn/conv2d.h"
#include "nn/layer_norm.h"
#include "nn/linear.h"

namespace weft::benchmarks {

/// Dosovitskiy et al. 2021, table 1: ViT-B by default; patches of 16x16.
struct VitSize {
  int64_t edge = 224, patch = 16, width = 768, depth = 12, heads = 12, classes = 1000;
  int64_t patches() const { return (edge / patch) * (edge / patch); }
};

/// One block before its residual stream: x + attention(norm(x)), then x + mlp(norm(x)).
struct VitBlock : nn::Module {
  int64_t heads;
  nn::LayerNorm norm1, norm2;
  nn::Linear qkv, projection, fc1, fc2;

  explicit VitBlock(const VitSize& size);
  Tensor forward(const Tensor& x) const override;
  void fields(nn::Visitor& v) override;
};

/// A vision transformer for counting its kernels: a class token, learned positions, the head on the class token.
struct Vit : nn::Module {
  nn::Conv2d patches;
  Tensor class_token, positions;  // [1, 1, width], [1, patches + 1, width]
  std::vector<std::shared_ptr<VitBlock>> blocks;
  nn::LayerNorm norm;
  nn::Linear head;

  explicit Vit(const VitSize& size);
  Tensor forward(const Tensor& x) const override;
  void fields(nn::Visitor& v) override;
};

}  // namespace weft::benchmarks
