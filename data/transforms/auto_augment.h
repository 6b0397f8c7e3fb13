// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <optional>
#include <string>

#include "data/draw.h"
#include "data/transforms/affine.h"

namespace weft::data {

/// The elements of the augmentation policies (Cubuk et al., CVPR 2019).
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

/// One step of a sub-policy: the op, how likely it is, and the bin of its magnitude (of 10).
struct PolicyStep {
  AugmentOp op;
  double probability;
  int bin;
};
using SubPolicy = std::array<PolicyStep, 2>;

/// The data set on which a policy was searched.
enum class PolicyOf : uint8_t { imagenet, cifar10, svhn };
const char* name(PolicyOf policy);

/// The 25 sub-policies of each set (Cubuk et al., "AutoAugment: Learning Augmentation Policies from Data", CVPR 2019,
/// appendix), with the values that torchvision has for them.
const std::array<SubPolicy, 25>& auto_augment_policy(PolicyOf policy);

/// AutoAugment: one of the 25 sub-policies, first its first step, then its second, each with its probability and sign.
Image auto_augment(Image image, PolicyOf policy, const AffineOptions& options, Draw& draw);

struct RandAugmentOptions {
  int ops = 2;        ///< steps per image
  int magnitude = 9;  ///< magnitude of each op, 0 … 30
  AffineOptions affine = {};
};

/// The space of RandAugment: 31 bins from nothing to AutoAugment's strongest.
inline constexpr MagnitudeSpace kRandAugmentSpace{.bins = 31};

/// RandAugment (Cubuk et al., NeurIPS 2020): `ops` steps, each one of 14 ops (all but invert) at the same magnitude
/// with a random sign. Errors: ops below 0, a magnitude outside 0 … 30.
Image rand_augment(Image image, const RandAugmentOptions& options, Draw& draw);

/// The wide space of TrivialAugment; shifts in pixels.
inline constexpr MagnitudeSpace kTrivialAugmentSpace{
    .bins = 31, .shear = 0.99, .translate = 32, .rotate = 135, .enhance = 0.99, .posterize = 6};

/// TrivialAugment Wide (Müller and Hutter, ICCV 2021): one of 14 ops (all but invert) at a random magnitude with a
/// random sign. It has nothing to tune.
Image trivial_augment(Image image, const AffineOptions& options, Draw& draw);

}  // namespace weft::data
