// SPDX-License-Identifier: Apache-2.0
#include "data/transforms/auto_augment.h"

#include <cmath>
#include <utility>

#include "data/transforms/affine.h"
#include "data/transforms/color.h"
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

namespace {

using enum AugmentOp;

constexpr std::array<SubPolicy, 25> kImageNet{{
    {{{posterize, 0.4, 8}, {rotate, 0.6, 9}}},  {{{solarize, 0.6, 5}, {autocontrast, 0.6, 0}}},
    {{{equalize, 0.8, 0}, {equalize, 0.6, 0}}}, {{{posterize, 0.6, 7}, {posterize, 0.6, 6}}},
    {{{equalize, 0.4, 0}, {solarize, 0.2, 4}}}, {{{equalize, 0.4, 0}, {rotate, 0.8, 8}}},
    {{{solarize, 0.6, 3}, {equalize, 0.6, 0}}}, {{{posterize, 0.8, 5}, {equalize, 1, 0}}},
    {{{rotate, 0.2, 3}, {solarize, 0.6, 8}}},   {{{equalize, 0.6, 0}, {posterize, 0.4, 6}}},
    {{{rotate, 0.8, 8}, {color, 0.4, 0}}},      {{{rotate, 0.4, 9}, {equalize, 0.6, 0}}},
    {{{equalize, 0, 0}, {equalize, 0.8, 0}}},   {{{invert, 0.6, 0}, {equalize, 1, 0}}},
    {{{color, 0.6, 4}, {contrast, 1, 8}}},      {{{rotate, 0.8, 8}, {color, 1, 2}}},
    {{{color, 0.8, 8}, {solarize, 0.8, 7}}},    {{{sharpness, 0.4, 7}, {invert, 0.6, 0}}},
    {{{shear_x, 0.6, 5}, {equalize, 1, 0}}},    {{{color, 0.4, 0}, {equalize, 0.6, 0}}},
    {{{equalize, 0.4, 0}, {solarize, 0.2, 4}}}, {{{solarize, 0.6, 5}, {autocontrast, 0.6, 0}}},
    {{{invert, 0.6, 0}, {equalize, 1, 0}}},     {{{color, 0.6, 4}, {contrast, 1, 8}}},
    {{{equalize, 0.8, 0}, {equalize, 0.6, 0}}},
}};

constexpr std::array<SubPolicy, 25> kCifar10{{
    {{{invert, 0.1, 0}, {contrast, 0.2, 6}}},
    {{{rotate, 0.7, 2}, {translate_x, 0.3, 9}}},
    {{{sharpness, 0.8, 1}, {sharpness, 0.9, 3}}},
    {{{shear_y, 0.5, 8}, {translate_y, 0.7, 9}}},
    {{{autocontrast, 0.5, 0}, {equalize, 0.9, 0}}},
    {{{shear_y, 0.2, 7}, {posterize, 0.3, 7}}},
    {{{color, 0.4, 3}, {brightness, 0.6, 7}}},
    {{{sharpness, 0.3, 9}, {brightness, 0.7, 9}}},
    {{{equalize, 0.6, 0}, {equalize, 0.5, 0}}},
    {{{contrast, 0.6, 7}, {sharpness, 0.6, 5}}},
    {{{color, 0.7, 7}, {translate_x, 0.5, 8}}},
    {{{equalize, 0.3, 0}, {autocontrast, 0.4, 0}}},
    {{{translate_y, 0.4, 3}, {sharpness, 0.2, 6}}},
    {{{brightness, 0.9, 6}, {color, 0.2, 8}}},
    {{{solarize, 0.5, 2}, {invert, 0, 0}}},
    {{{equalize, 0.2, 0}, {autocontrast, 0.6, 0}}},
    {{{equalize, 0.2, 0}, {equalize, 0.6, 0}}},
    {{{color, 0.9, 9}, {equalize, 0.6, 0}}},
    {{{autocontrast, 0.8, 0}, {solarize, 0.2, 8}}},
    {{{brightness, 0.1, 3}, {color, 0.7, 0}}},
    {{{solarize, 0.4, 5}, {autocontrast, 0.9, 0}}},
    {{{translate_y, 0.9, 9}, {translate_y, 0.7, 9}}},
    {{{autocontrast, 0.9, 0}, {solarize, 0.8, 3}}},
    {{{equalize, 0.8, 0}, {invert, 0.1, 0}}},
    {{{translate_y, 0.7, 9}, {autocontrast, 0.9, 0}}},
}};

constexpr std::array<SubPolicy, 25> kSvhn{{
    {{{shear_x, 0.9, 4}, {invert, 0.2, 0}}},       {{{shear_y, 0.9, 8}, {invert, 0.7, 0}}},
    {{{equalize, 0.6, 0}, {solarize, 0.6, 6}}},    {{{invert, 0.9, 0}, {equalize, 0.6, 0}}},
    {{{equalize, 0.6, 0}, {rotate, 0.9, 3}}},      {{{shear_x, 0.9, 4}, {autocontrast, 0.8, 0}}},
    {{{shear_y, 0.9, 8}, {invert, 0.4, 0}}},       {{{shear_y, 0.9, 5}, {solarize, 0.2, 6}}},
    {{{invert, 0.9, 0}, {autocontrast, 0.8, 0}}},  {{{equalize, 0.6, 0}, {rotate, 0.9, 3}}},
    {{{shear_x, 0.9, 4}, {solarize, 0.3, 3}}},     {{{shear_y, 0.8, 8}, {invert, 0.7, 0}}},
    {{{equalize, 0.9, 0}, {translate_y, 0.6, 6}}}, {{{invert, 0.9, 0}, {equalize, 0.6, 0}}},
    {{{contrast, 0.3, 3}, {rotate, 0.8, 4}}},      {{{invert, 0.8, 0}, {translate_y, 0, 2}}},
    {{{shear_y, 0.7, 6}, {solarize, 0.4, 8}}},     {{{invert, 0.6, 0}, {rotate, 0.8, 4}}},
    {{{shear_y, 0.3, 7}, {translate_x, 0.9, 3}}},  {{{shear_x, 0.1, 6}, {invert, 0.6, 0}}},
    {{{solarize, 0.7, 2}, {translate_y, 0.6, 7}}}, {{{shear_y, 0.8, 4}, {invert, 0.8, 0}}},
    {{{shear_x, 0.7, 9}, {translate_y, 0.8, 3}}},  {{{shear_y, 0.8, 5}, {autocontrast, 0.7, 0}}},
    {{{shear_x, 0.7, 2}, {invert, 0.1, 0}}},
}};

}  // namespace

const char* name(PolicyOf policy) {
  constexpr const char* kNames[] = {"imagenet", "cifar10", "svhn"};
  return kNames[static_cast<int>(policy)];
}

const std::array<SubPolicy, 25>& auto_augment_policy(PolicyOf policy) {
  switch (policy) {
    case PolicyOf::cifar10:
      return kCifar10;
    case PolicyOf::svhn:
      return kSvhn;
    default:
      return kImageNet;
  }
}

Image auto_augment(Image image, PolicyOf policy, const AffineOptions& options, Draw& draw) {
  const MagnitudeSpace space{};
  for (const PolicyStep& step : auto_augment_policy(policy)[static_cast<size_t>(draw.below(25))])
    if (draw.coin(step.probability)) image = apply_at(step.op, step.bin, space, std::move(image), options, draw);
  return image;
}

Image rand_augment(Image image, const RandAugmentOptions& o, Draw& draw) {
  WEFT_CHECK(o.ops >= 0, "rand_augment: expected at least 0 ops, got ", o.ops);
  for (int step = 0; step < o.ops; ++step) {
    const auto op = static_cast<AugmentOp>(draw.below(kAugmentOps - 1));  // invert is the last
    image = apply_at(op, o.magnitude, kRandAugmentSpace, std::move(image), o.affine, draw);
  }
  return image;
}

Image trivial_augment(Image image, const AffineOptions& options, Draw& draw) {
  const auto op = static_cast<AugmentOp>(draw.below(kAugmentOps - 1));  // invert is the last
  const auto bin = static_cast<int>(draw.below(kTrivialAugmentSpace.bins));
  return apply_at(op, bin, kTrivialAugmentSpace, std::move(image), options, draw);
}

}  // namespace weft::data
