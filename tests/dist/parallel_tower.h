// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <vector>

#include "core/ops/binary.h"
#include "dist/tensor/parallel_block.h"
#include "nn/staged.h"
#include "nn/transformer.h"

namespace weft::dist::testing {

/// A linear layer, blocks, a norm and a linear layer. x [N, tokens, in] to [N, tokens, out].
struct BlockTower : nn::Module, nn::Staged {
  static constexpr int64_t kIn = 6, kWidth = 24, kHeads = 12, kHidden = 48, kOut = 5;
  nn::Linear stem{kIn, kWidth};
  std::vector<std::shared_ptr<nn::Module>> blocks;
  nn::LayerNorm norm{kWidth, 1e-6};
  nn::Linear head{kWidth, kOut, {.bias = false}};

  /// Builds nn::TransformerBlock without a group, else ParallelBlock, with equal draws.
  BlockTower(int count, const ProcessGroupPtr& group, Tokens tokens) {
    for (int i = 0; i < count; ++i) {
      if (!group) {
        blocks.push_back(std::make_shared<nn::TransformerBlock>(
            nn::TransformerBlockOptions{.width = kWidth, .heads = kHeads, .hidden = kHidden}));
        continue;
      }
      const auto block = std::make_shared<ParallelBlock>(
          ParallelBlockOptions{.width = kWidth, .heads = kHeads, .hidden = kHidden, .tokens = tokens}, group);
      block->enters = i == 0, block->leaves = i + 1 == count;
      blocks.push_back(block);
    }
  }
  Tensor forward(const Tensor& x) const override { return run({0, layers()}, x, x); }
  int64_t layers() const override { return static_cast<int64_t>(blocks.size()); }
  Tensor run(nn::LayerRange range, const Tensor& x, const Tensor& sample) const override {
    Tensor y = range.first == 0 ? stem(x) : x;
    for (int64_t i = range.first; i < range.last; ++i) {
      const nn::Module& block = *blocks[static_cast<size_t>(i)];
      const auto* const divided = dynamic_cast<const ParallelBlock*>(&block);
      y = divided ? (*divided)(y, {.tokens = sample.size(1)}) : block(y);
    }
    return range.last == layers() ? head(norm(y)) : y;
  }
  bool uses(nn::LayerRange range, const std::string& parameter) const override {
    if (const auto layer = nn::layer_of(parameter, "blocks")) return range.has(*layer);
    return parameter.starts_with("stem.") ? range.first == 0 : range.last == layers();
  }
  void fields(nn::Visitor& v) override {
    v("stem", stem);
    v("blocks", blocks);
    v("norm", norm);
    v("head", head);
  }
};

/// A seed gives the same tower for any number of ranks. Biases and norms begin away from 0 and 1, so that a lost one
/// shows.
std::shared_ptr<BlockTower> tower(int blocks, const ProcessGroupPtr& group, DType dtype, Device device = {},
                                  Tokens tokens = Tokens::all);

}  // namespace weft::dist::testing
