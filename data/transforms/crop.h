// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "data/draw.h"
#include "data/image.h"
#include "data/transforms/affine.h"

namespace weft::data {

/// A part of an image, in pixels.
struct Window {
  int64_t top = 0, left = 0, height = 0, width = 0;
};

/// The window of height x width whose upper left corner is (top, left); what lies outside the image is black.
Image crop(const Image& image, int64_t top, int64_t left, int64_t height, int64_t width);

/// The middle window, as torchvision's center_crop: the offset rounded half to even. A smaller image gets black rows
/// and columns, the odd one of them below and on the right.
Image centre_crop(const Image& image, int64_t height, int64_t width);

struct RandomErasingOptions {
  double probability = 0.5;
  double least_area = 0.02;  ///< share of the image's area
  double most_area = 1.0 / 3;
  double least_ratio = 0.3;  ///< height over width
  double most_ratio = 3.3;
  Fill fill = {};  ///< colour of the box, a byte per channel; empty: black
};

/// Random erasing (Zhong et al., AAAI 2020): with a probability, a random box of the image is filled; area uniform,
/// ratio log-uniform, position uniform; after ten boxes that do not fit, none. torchvision's rules. Errors: a
/// probability outside 0 … 1, shares or ratios out of order.
Image random_erasing(Image image, const RandomErasingOptions& options, Draw& draw);

}  // namespace weft::data
