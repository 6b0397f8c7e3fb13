// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/ops/layers/conv2d.h"
#include "core/tensor.h"

namespace weft {

/// x [N, H, W, C r^2] as [N, H r, W r, C]: channels c r^2 … become the r x r pixels of channel c (Shi et al. 2016).
/// Errors: channels that r^2 does not divide.
Tensor pixel_shuffle(const Tensor& x, Integer r);
/// The inverse: x [N, H r, W r, C] as [N, H, W, C r^2]. Errors: height or width that r does not divide.
Tensor pixel_unshuffle(const Tensor& x, Integer r);

struct PatchOptions {
  Size2d kernel = 3;
  Size2d stride = 1, padding = 0, dilation = 1;
};

/// The windows that conv2d() sees of x [N, H, W, C], padded with zeros: [N, P Q, R S C], in the order of its weights.
/// Errors: not [N, H, W, C], a kernel larger than the padded input.
Tensor unfold(const Tensor& x, const PatchOptions& options);
/// The images [N, H, W, C] of `size` whose pixels are the sums of the windows' elements in x [N, P Q, R S C]: the
/// transpose of unfold(). Floating; the same bits in every run. Errors: sizes that do not fit.
Tensor fold(const Tensor& x, Size2d size, const PatchOptions& options);

/// The pixels beyond the image in grid_sample(): zeros, or its nearest pixel.
enum class Beyond { zeros, border };
struct GridSampleOptions {
  bool nearest = false;  ///< the nearest pixel, else bilinear between four
  Beyond beyond = Beyond::zeros;
  bool align_corners = false;  ///< -1 and 1 are the centres of the outer pixels, else the image's edges
};

/// The images x [N, H, W, C] at the points (x, y) of grid [N, P, Q, 2]: [N, P, Q, C]. The image is [-1, 1] wide and
/// high. Differentiable in both. Errors: sizes, dtypes or devices that do not fit.
Tensor grid_sample(const Tensor& x, const Tensor& grid, const GridSampleOptions& options = {});

}  // namespace weft
