// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/ops/layers/conv2d.h"
#include "core/tensor.h"

namespace weft {

/// A new pixel follows from 1, 2 x 2 or 4 x 4 old ones; resize2d() has the formulas.
enum class Interpolation { nearest, bilinear, bicubic };

/// Factors of height and width, or one for both.
struct Scale2d {
  double h, w;
  constexpr Scale2d(double both) : h(both), w(both) {}  // NOLINT(google-explicit-constructor)
  constexpr Scale2d(double height, double width) : h(height), w(width) {}
};

struct Resize2dOptions {
  Interpolation interpolation = Interpolation::bilinear;
  bool antialias =
      false;  ///< shrinking averages over all pixels under the filter, which is Keys' with a = -0.5 for bicubic
  bool align_corners = false;  ///< the centres of the corner pixels meet, not the corners of the images
  Scale2d scale = 0;           ///< new size over old one as the coordinates are computed; 0: of the sizes
};

/// Every new row and column as a weighted sum of old ones.
struct Resize2dWeights {
  Tensor rows;     ///< [new height, old height]
  Tensor columns;  ///< [new width, old width]
};

/// The weights for images of `from` to become `to`; computed on the host, so keep them where they are used in every
/// step. Errors: sizes below 1, not a floating dtype.
Resize2dWeights resize2d_weights(Size2d from, Size2d to, const Resize2dOptions& options = {}, DType dtype = DType::f32,
                                 Device device = {});

/// x [N, H, W, C] resized, pixel centres at half integers. As PyTorch's interpolate: nearest takes pixel floor(i old /
/// new); without antialias, bicubic is Keys' kernel with a = -0.75 and pixels outside repeat the edge. Not under
/// autocast. Errors: not floating [N, H, W, C], weights of other sizes, dtype or device; antialias or align_corners
/// with nearest, both at once.
Tensor resize2d(const Tensor& x, const Resize2dWeights& weights);
/// As above, with weights made for this call.
Tensor resize2d(const Tensor& x, Size2d size, const Resize2dOptions& options = {});

}  // namespace weft
