// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>

#include "data/draw.h"
#include "data/transforms/affine.h"

namespace weft::data {

/// What the augmentation policies are made of (Cubuk et al., CVPR 2019).
enum class AugmentOp : uint8_t {
  identity,
  shear_x,
  shear_y,
  translate_x,
  translate_y,
  rotate,
  brightness,
  color,
  contrast,
  sharpness,
  posterize,
  solarize,
  autocontrast,
  equalize,
  invert,
};
inline constexpr int kAugmentOps = 15;
const char* name(AugmentOp op);

/// How strong the ops are, from bin 0 to bin `bins` - 1.
struct MagnitudeSpace {
  int bins = 10;
  double shear = 0.3;              ///< largest slope
  double translate = 150.0 / 331;  ///< largest shift, a share of the side, or in pixels above 1
  double rotate = 30;              ///< largest angle in degrees
  double enhance = 0.9;            ///< brightness, colour, contrast, sharpness: factor 1 - x … 1 + x
  double posterize = 4;            ///< most bits taken away
};

/// Magnitude of a bin, without sign: a slope, pixels, degrees, a change of the factor, bits, or a threshold; 0 for ops
/// without one. Rounded to f32, where torchvision works it out. Errors: a bin outside the space.
double magnitude(AugmentOp op, int bin, const MagnitudeSpace& space, int64_t height, int64_t width);

/// Whether the magnitude is taken negative half of the time.
bool is_signed(AugmentOp op);

/// The image after the op at a magnitude with its sign; enhancements by the factor 1 + magnitude.
Image apply(AugmentOp op, double magnitude, Image image, const AffineOptions& options = {});

/// `op` at `bin` of the space with a random sign.
Image apply_at(AugmentOp op, int bin, const MagnitudeSpace& space, Image image, const AffineOptions& options,
               Draw& draw);

}  // namespace weft::data
