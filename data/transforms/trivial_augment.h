// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "data/transforms/augment_op.h"

namespace weft::data {

/// The wide space of TrivialAugment; shifts in pixels.
inline constexpr MagnitudeSpace kTrivialAugmentSpace{
    .bins = 31, .shear = 0.99, .translate = 32, .rotate = 135, .enhance = 0.99, .posterize = 6};

/// TrivialAugment Wide (Müller and Hutter, ICCV 2021): one of 14 ops (all but invert) at a random magnitude with a
/// random sign. It has nothing to tune.
Image trivial_augment(Image image, const AffineOptions& options, Draw& draw);

}  // namespace weft::data
