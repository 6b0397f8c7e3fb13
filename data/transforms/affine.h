// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "data/picture.h"

namespace weft::data {

/// How a value between pixels is found. nearest: positions in 16-bit fixed point. bilinear: of four pixels, those over
/// the border taken from the border.
enum class Sampling : uint8_t { nearest, bilinear };

/// What lies outside the picture, one byte per channel; empty: black.
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

/// The picture seen through a matrix, in its own size: the arithmetic of Pillow's Image.transform, whose values it
/// reproduces. Errors: a fill of another number of channels, more than 4 channels.
Picture affine(const Picture& picture, const AffineMatrix& matrix, const AffineOptions& options = {});

/// A picture of `like`'s size and label in the fill colour. Errors: see affine.
Picture filled(const Picture& like, const Fill& fill);

}  // namespace weft::data
