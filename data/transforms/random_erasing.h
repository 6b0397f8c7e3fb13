// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "data/draw.h"
#include "data/transforms/affine.h"

namespace weft::data {

struct RandomErasingOptions {
  double probability = 0.5;
  double least_area = 0.02;  ///< share of the image's area
  double most_area = 1.0 / 3;
  double least_ratio = 0.3;  ///< height over width
  double most_ratio = 3.3;
  Fill fill = {};  ///< of the box, one byte per channel; empty: black
};

/// Random erasing (Zhong et al., AAAI 2020): with a probability, a random box of the image is filled; area uniform,
/// ratio log-uniform, position uniform; after ten boxes that do not fit, none. torchvision's rules. Errors: a
/// probability outside 0 … 1, shares or ratios out of order.
Image random_erasing(Image image, const RandomErasingOptions& options, Draw& draw);

}  // namespace weft::data
