// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>

#include "core/ops/layers/resize2d.h"
#include "nn/module.h"

namespace weft::nn {

struct UpsampleOptions {
  std::optional<Size2d> size = {};  ///< size of the result; else scale
  Scale2d scale = 2;                ///< new size over old one, rounded down
  Interpolation interpolation = Interpolation::nearest;
  bool align_corners = false;
};

/// Images x [N, H, W, C] enlarged (or shrunk) by resize2d(). The weights of the last sizes are kept.
struct Upsample : Module {
  UpsampleOptions options;

  explicit Upsample(UpsampleOptions upsampling = {});
  Tensor forward(const Tensor& x) const override;

 private:
  struct Weights {
    Shape from;
    DType dtype;
    Device device;
    Resize2dWeights matrices;
  };
  mutable std::optional<Weights> last_;
};

}  // namespace weft::nn
