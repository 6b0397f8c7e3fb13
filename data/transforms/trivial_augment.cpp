// SPDX-License-Identifier: Apache-2.0
#include "data/transforms/trivial_augment.h"

#include <utility>

namespace weft::data {

Image trivial_augment(Image image, const AffineOptions& options, Draw& draw) {
  const auto op = static_cast<AugmentOp>(draw.below(kAugmentOps - 1));  // invert is the last
  const auto bin = static_cast<int>(draw.below(kTrivialAugmentSpace.bins));
  return apply_at(op, bin, kTrivialAugmentSpace, std::move(image), options, draw);
}

}  // namespace weft::data
