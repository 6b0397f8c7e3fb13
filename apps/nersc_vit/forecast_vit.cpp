// SPDX-License-Identifier: Apache-2.0
#include "apps/nersc_vit/forecast_vit.h"

#include "core/autograd.h"
#include "core/ops/binary.h"

namespace weft::nersc_vit {
namespace {

constexpr double kEps = 1e-6;

Tensor drawn_positions(const ForecastVitOptions& o) {
  WEFT_CHECK(o.patch > 0 && o.rows > 0 && o.columns > 0 && o.rows % o.patch == 0 && o.columns % o.patch == 0,
             "ForecastVit: expected fields whose sides are multiples of the patch, got ", o.rows, " x ", o.columns,
             " and ", o.patch);
  WEFT_CHECK(o.depth > 0, "ForecastVit: expected at least one block, got ", o.depth);
  const Tensor positions = Tensor::empty({1, o.patches(), o.width});
  nn::init_normal_(positions, 0.02);
  return positions.requires_grad_();
}

}  // namespace

ForecastVit::ForecastVit(const ForecastVitOptions& given, const dist::ProcessGroupPtr& model_ranks)
    : options(given),
      patch_embed(given.patch, given.in_channels, given.width),
      pos_embed(drawn_positions(given)),
      norm(given.width, kEps),
      head(given.width, given.patch * given.patch * given.out_channels,
           {.bias = false, .init = nn::Init::transformer}) {
  for (int64_t i = 0; i < given.depth; ++i)
    blocks.push_back(
        std::make_shared<dist::ParallelBlock>(dist::ParallelBlockOptions{.width = given.width,
                                                                         .heads = given.heads,
                                                                         .hidden = given.hidden_ratio * given.width,
                                                                         .eps = kEps,
                                                                         .tokens = given.tokens},
                                              model_ranks));
  blocks.front()->enters = blocks.back()->leaves = true;
}

Tensor ForecastVit::embed(const Tensor& x) const {
  const auto [N, H, W, C] = x.dims<4>();
  WEFT_CHECK(H == options.rows && W == options.columns, "ForecastVit: expected fields of ", options.rows, " x ",
             options.columns, ", got ", x);
  const Tensor patches = patch_embed(x);
  return patches + pos_embed.to(patches.dtype());
}

Tensor ForecastVit::predict(const Tensor& tokens) const {
  const int64_t N = tokens.size(0), P = options.patch, K = options.out_channels;
  const int64_t H = options.rows, W = options.columns;
  return head(norm(tokens)).reshape({N, H / P, W / P, P, P, K}).permute({0, 1, 3, 2, 4, 5}).reshape({N, H, W, K});
}

Tensor ForecastVit::run(nn::LayerRange range, const Tensor& x, const Tensor&) const {
  Tensor tokens = range.first == 0 ? embed(x) : x;
  const nn::TokenRows rows{.tokens = options.patches()};
  for (int64_t i = range.first; i < range.last; ++i) {
    const auto compute = [block = blocks[static_cast<size_t>(i)], rows](const std::vector<Tensor>& in) {
      return (*block)(in[0], rows);
    };
    tokens = options.recompute && grad_enabled() ? checkpoint(compute, {tokens}) : compute({tokens});
  }
  return range.last == layers() ? predict(tokens) : tokens;
}

bool ForecastVit::uses(nn::LayerRange range, const std::string& parameter) const {
  if (const auto layer = nn::layer_of(parameter, "blocks")) return range.has(*layer);
  const bool ends = parameter.starts_with("norm.") || parameter.starts_with("head.");
  const bool begins = parameter.starts_with("patch_embed.") || parameter == "pos_embed";
  return (begins && range.first == 0) || (ends && range.last == layers());
}

void ForecastVit::fields(nn::Visitor& v) {
  v("pos_embed", pos_embed);
  v("patch_embed", patch_embed);
  v("blocks", blocks);
  v("norm", norm);
  v("head", head);
}

}  // namespace weft::nersc_vit
