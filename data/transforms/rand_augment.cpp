// SPDX-License-Identifier: Apache-2.0
#include "data/transforms/rand_augment.h"

#include <utility>

#include "kernels/error.h"

namespace weft::data {

Image rand_augment(Image image, const RandAugmentOptions& o, Draw& draw) {
  WEFT_CHECK(o.ops >= 0, "rand_augment: expected at least 0 ops, got ", o.ops);
  for (int step = 0; step < o.ops; ++step) {
    const auto op = static_cast<AugmentOp>(draw.below(kAugmentOps - 1));  // invert is the last
    image = apply_at(op, o.magnitude, kRandAugmentSpace, std::move(image), o.affine, draw);
  }
  return image;
}

}  // namespace weft::data
