// SPDX-License-Identifier: Apache-2.0
#include "data/transforms/augment_op.h"

#include <cmath>
#include <utility>

#include "data/transforms/affine.h"
#include "data/transforms/color.h"
#include "data/transforms/lookup.h"
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

Image apply(AugmentOp op, double magnitude, Image image, const AffineOptions& options) {
  switch (op) {
    case AugmentOp::identity:
      return image;
    case AugmentOp::shear_x:
      return shear_x(image, magnitude, options);
    case AugmentOp::shear_y:
      return shear_y(image, magnitude, options);
    case AugmentOp::translate_x:
      return translate(image, static_cast<int64_t>(magnitude), 0, options.fill);
    case AugmentOp::translate_y:
      return translate(image, 0, static_cast<int64_t>(magnitude), options.fill);
    case AugmentOp::rotate:
      return rotate(image, magnitude, options);
    case AugmentOp::brightness:
      return brightness(std::move(image), 1 + magnitude);
    case AugmentOp::color:
      return saturation(std::move(image), 1 + magnitude);
    case AugmentOp::contrast:
      return contrast(std::move(image), 1 + magnitude);
    case AugmentOp::sharpness:
      return sharpness(std::move(image), 1 + magnitude);
    case AugmentOp::posterize:
      return posterize(std::move(image), static_cast<int>(magnitude));
    case AugmentOp::solarize:
      return solarize(std::move(image), magnitude);
    case AugmentOp::autocontrast:
      return autocontrast(std::move(image));
    case AugmentOp::equalize:
      return equalize(std::move(image));
    case AugmentOp::invert:
      return invert(std::move(image));
  }
  return image;
}

Image apply_at(AugmentOp op, int bin, const MagnitudeSpace& space, Image image, const AffineOptions& options,
               Draw& draw) {
  double strength = magnitude(op, bin, space, image.height, image.width);
  if (is_signed(op) && draw.coin()) strength = -strength;
  return apply(op, strength, std::move(image), options);
}

}  // namespace weft::data
