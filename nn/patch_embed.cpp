// SPDX-License-Identifier: Apache-2.0
#include "nn/patch_embed.h"

#include "core/autocast.h"
#include "core/ops/linear.h"

namespace weft::nn {

PatchConv2d::PatchConv2d(int64_t patch_edge, int64_t channels, int64_t width)
    : Conv2d(channels, width, {patch_edge, patch_edge}, {.stride = {patch_edge, patch_edge}},
             {.init = Init::transformer}),
      patch(patch_edge) {}

Tensor PatchConv2d::forward(const Tensor& x) const {
  const auto [N, H, W, C] = x.dims<4>();
  WEFT_CHECK(H % patch == 0 && W % patch == 0 && H > 0 && W > 0,
             "PatchEmbed: expected images whose sides are multiples of ", patch, ", got ", x);
  const int64_t rows = H / patch, columns = W / patch, length = patch * patch * C;
  const Tensor patches = x.reshape({N, rows, patch, columns, patch, C}).permute({0, 1, 3, 2, 4, 5});
  // The weight is [width, patch, patch, channels] in memory: the order of a patch's pixels. Autocast knows the
  // parameter, not a view of it.
  const Tensor matrix = autocast_low(weight).reshape({weight.size(0), length});
  return linear(patches.reshape({N, rows * columns, length}), matrix, bias);
}

}  // namespace weft::nn
