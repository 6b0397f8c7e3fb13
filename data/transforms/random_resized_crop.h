// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "data/draw.h"
#include "data/transforms/resize.h"

namespace weft::data {

struct RandomResizedCropOptions {
  int64_t height = 224;
  int64_t width = 224;
  double least_area = 0.08;  ///< share of the image's area
  double most_area = 1.0;
  double least_ratio = 3.0 / 4;  ///< width over height
  double most_ratio = 4.0 / 3;
  Filter filter = Filter::bilinear;
};

/// The window that random_resized_crop takes: area uniform, ratio log-uniform, position uniform; after ten windows that
/// do not fit, the largest middle window of an allowed ratio (Szegedy et al. 2015, section 6; torchvision's rules).
Window random_window(int64_t height, int64_t width, const RandomResizedCropOptions& options, Draw& draw);

/// A random window, resized. Errors: shares or ratios out of order or not positive.
Image random_resized_crop(const Image& image, const RandomResizedCropOptions& options, Draw& draw);

}  // namespace weft::data
