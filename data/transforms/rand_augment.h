// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "data/transforms/augment_op.h"

namespace weft::data {

struct RandAugmentOptions {
  int ops = 2;        ///< steps per image
  int magnitude = 9;  ///< of each, 0 … 30
  AffineOptions affine = {};
};

/// The space of RandAugment: 31 bins from nothing to AutoAugment's strongest.
inline constexpr MagnitudeSpace kRandAugmentSpace{.bins = 31};

/// RandAugment (Cubuk et al., NeurIPS 2020): `ops` steps, each one of 14 ops (all but invert) at the same magnitude
/// with a random sign. Errors: ops below 0, a magnitude outside 0 … 30.
Image rand_augment(Image image, const RandAugmentOptions& options, Draw& draw);

}  // namespace weft::data
