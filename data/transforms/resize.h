// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <vector>

#include "data/draw.h"
#include "data/image.h"
#include "data/transforms/crop.h"

namespace weft::data {

/// bilinear: the tent max(0, 1 - |t|). bicubic: Keys' cubic convolution (IEEE ASSP 29, 1981) with a = -0.5.
enum class Filter : uint8_t { bilinear, bicubic };

/// Separable resampling with antialiasing: when shrinking, the filter is stretched by the scale, so that every pixel
/// counts. Rows first, then columns, 8-bit values between, weights in 22-bit fixed point: the arithmetic of Pillow's
/// Image.resize, whose values it reproduces. Errors: a size below 1.
Image resize(const Image& image, int64_t height, int64_t width, Filter filter = Filter::bilinear);

/// Resizes a part of the image, as if cut out first. Errors: a window that is not in the image.
Image resize(const Image& image, const Window& window, int64_t height, int64_t width, Filter filter = Filter::bilinear);

/// The shorter edge becomes `edge`, the longer one int(edge * longer / shorter), as torchvision's Resize(edge).
Image resize_shortest_edge(const Image& image, int64_t edge, Filter filter = Filter::bilinear);

/// Weights of a resampling are fixed-point numbers with this number of bits after the point.
constexpr int kTapBits = 22;

/// Which inputs each output takes, and how much of each: output o is the sum of weights[at + t] * input[first + t], t
/// from 0 to count - 1.
struct Taps {
  struct Span {
    int64_t first = 0;
    int64_t count = 0;
    int64_t at = 0;
  };
  std::vector<Span> spans;       ///< one for each output
  std::vector<int32_t> weights;  ///< an output's weights have the sum 1 << kTapBits, but for rounding
};

/// The taps of a row of `in` pixels that becomes one of `out`. The filter is stretched by the scale when shrinking.
Taps make_taps(int64_t in, int64_t out, Filter filter);

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
