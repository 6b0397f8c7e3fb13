// SPDX-License-Identifier: Apache-2.0
#include "data/transforms/augment_op.h"

#include <cmath>
#include <utility>

#include "data/transforms/autocontrast.h"
#include "data/transforms/brightness.h"
#include "data/transforms/contrast.h"
#include "data/transforms/equalize.h"
#include "data/transforms/invert.h"
#include "data/transforms/posterize.h"
#include "data/transforms/rotate.h"
#include "data/transforms/saturation.h"
#include "data/transforms/sharpness.h"
#include "data/transforms/shear.h"
#include "data/transforms/solarize.h"
#include "data/transforms/translate.h"
#include "kernels/error.h"

namespace weft::data {
namespace {

/// Entry `i` of `count` evenly spaced numbers, as f32: whole numbers come out whole, so that shifts are cut as
/// expected.
double spaced(double first, double last, int count, int i) {
  return static_cast<float>(first + (last - first) * i / (count - 1));
}

}  // namespace

const char* name(AugmentOp op) {
  constexpr const char* kNames[kAugmentOps] = {"identity",  "shear_x",    "shear_y",      "translate_x", "translate_y",
                                               "rotate",    "brightness", "color",        "contrast",    "sharpness",
                                               "posterize", "solarize",   "autocontrast", "equalize",    "invert"};
  return kNames[static_cast<int>(op)];
}

bool is_signed(AugmentOp op) { return op >= AugmentOp::shear_x && op <= AugmentOp::sharpness; }

double magnitude(AugmentOp op, int bin, const MagnitudeSpace& space, int64_t height, int64_t width) {
  WEFT_CHECK(space.bins >= 2 && bin >= 0 && bin < space.bins, "augment: expected a magnitude from 0 to ",
             space.bins - 1, ", got ", bin);
  const auto up_to = [&](double most) { return spaced(0, most, space.bins, bin); };
  const auto pixels = [&](int64_t side) {
    return space.translate > 1 ? space.translate : space.translate * static_cast<double>(side);
  };
  switch (op) {
    case AugmentOp::shear_x:
    case AugmentOp::shear_y:
      return up_to(space.shear);
    case AugmentOp::translate_x:
      return up_to(pixels(width));
    case AugmentOp::translate_y:
      return up_to(pixels(height));
    case AugmentOp::rotate:
      return up_to(space.rotate);
    case AugmentOp::brightness:
    case AugmentOp::color:
    case AugmentOp::contrast:
    case AugmentOp::sharpness:
      return up_to(space.enhance);
    case AugmentOp::posterize:
      return 8 - std::nearbyint(bin / ((space.bins - 1) / space.posterize));
    case AugmentOp::solarize:
      return spaced(255, 0, space.bins, bin);
    default:
      return 0;
  }
}

Picture apply(AugmentOp op, double magnitude, Picture picture, const AffineOptions& options) {
  switch (op) {
    case AugmentOp::identity:
      return picture;
    case AugmentOp::shear_x:
      return shear_x(picture, magnitude, options);
    case AugmentOp::shear_y:
      return shear_y(picture, magnitude, options);
    case AugmentOp::translate_x:
      return translate(picture, static_cast<int64_t>(magnitude), 0, options.fill);
    case AugmentOp::translate_y:
      return translate(picture, 0, static_cast<int64_t>(magnitude), options.fill);
    case AugmentOp::rotate:
      return rotate(picture, magnitude, options);
    case AugmentOp::brightness:
      return brightness(std::move(picture), 1 + magnitude);
    case AugmentOp::color:
      return saturation(std::move(picture), 1 + magnitude);
    case AugmentOp::contrast:
      return contrast(std::move(picture), 1 + magnitude);
    case AugmentOp::sharpness:
      return sharpness(std::move(picture), 1 + magnitude);
    case AugmentOp::posterize:
      return posterize(std::move(picture), static_cast<int>(magnitude));
    case AugmentOp::solarize:
      return solarize(std::move(picture), magnitude);
    case AugmentOp::autocontrast:
      return autocontrast(std::move(picture));
    case AugmentOp::equalize:
      return equalize(std::move(picture));
    case AugmentOp::invert:
      return invert(std::move(picture));
  }
  return picture;
}

Picture apply_at(AugmentOp op, int bin, const MagnitudeSpace& space, Picture picture, const AffineOptions& options,
                 Draw& draw) {
  double strength = magnitude(op, bin, space, picture.height, picture.width);
  if (is_signed(op) && draw.coin()) strength = -strength;
  return apply(op, strength, std::move(picture), options);
}

}  // namespace weft::data
