// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "data/image.h"

namespace weft::data {

/// How a value between pixels is found. nearest: positions in 16-bit fixed point. bilinear: of four pixels, those over
/// the border taken from the border.
enum class Sampling : uint8_t { nearest, bilinear };

/// The colour outside the image, a byte per channel; empty: black.
using Fill = std::vector<uint8_t>;

struct AffineOptions {
  Sampling sampling = Sampling::nearest;
  Fill fill = {};
};

/// Output position to input position: u = a x + b y + c, v = d x + e y + f, in pixels, pixel centres at halves.
struct AffineMatrix {
  double a = 1, b = 0, c = 0;
  double d = 0, e = 1, f = 0;
};

/// The image seen through a matrix, in its own size: the arithmetic of Pillow's Image.transform, whose values it
/// reproduces. Errors: a fill of another number of channels, more than 4 channels.
Image affine(const Image& image, const AffineMatrix& matrix, const AffineOptions& options = {});

/// An image of `like`'s size and label in the fill colour. Errors: see affine.
Image filled(const Image& like, const Fill& fill);

/// Turned counter-clockwise about the centre, in degrees, in its own size: corners are lost.
Image rotate(const Image& image, double degrees, const AffineOptions& options = {});

/// Rows pushed sideways in proportion to their distance from the upper edge: u = x + slope y, with the upper left
/// corner at rest.
Image shear_x(const Image& image, double slope, const AffineOptions& options = {});
/// Columns pushed up or down: v = y + slope x.
Image shear_y(const Image& image, double slope, const AffineOptions& options = {});

/// Moved `right` and `down` by whole pixels; negative: left and up.
Image translate(const Image& image, int64_t right, int64_t down, const Fill& fill = {});

}  // namespace weft::data
