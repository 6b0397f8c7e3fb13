// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <vector>

#include "dist/tensor/parallel_block.h"
#include "nn/conv.h"
#include "nn/staged.h"

namespace weft::nersc_vit {

struct ForecastVitOptions {
  int64_t rows = 360, columns = 720;  ///< size of the fields
  int64_t in_channels = 20, out_channels = 20;
  int64_t patch = 8;
  int64_t width = 384, depth = 12, heads = 8;
  int64_t hidden_ratio = 4;  ///< width inside the feed-forward, in widths
  dist::Tokens tokens = dist::Tokens::all;
  bool recompute = false;  ///< backward computes each block a second time: memory for time

  int64_t patches() const { return rows / patch * (columns / patch); }
};

/// A vision transformer (Dosovitskiy et al. 2020) from fields to fields: patches with learned positions, without a
/// class token; each token becomes the patch of the prediction at its place. x [N, rows, columns, in_channels] to [N,
/// rows, columns, out_channels]. The ranks of a group hold its blocks together (docs/tensor_parallel.md); the names are
/// the same for any number.
struct ForecastVit : nn::Module, nn::Staged {
  ForecastVitOptions options;
  nn::PatchEmbed patch_embed;
  Tensor pos_embed;  ///< [1, tokens, width]
  std::vector<std::shared_ptr<dist::ParallelBlock>> blocks;
  nn::LayerNorm norm;
  nn::Linear head;  ///< width to patch * patch * out_channels, without bias

  /// Errors: rows or columns that the patch does not divide, a depth below 1, those of dist::ParallelBlock.
  ForecastVit(const ForecastVitOptions& options, const dist::ProcessGroupPtr& model_ranks);
  Tensor forward(const Tensor& x) const override { return run({0, layers()}, x, x); }
  void fields(nn::Visitor& v) override;
  int64_t layers() const override { return options.depth; }
  Tensor run(nn::LayerRange range, const Tensor& x, const Tensor& sample) const override;
  bool uses(nn::LayerRange range, const std::string& parameter) const override;

 private:
  Tensor embed(const Tensor& x) const;
  Tensor predict(const Tensor& tokens) const;
};

}  // namespace weft::nersc_vit
