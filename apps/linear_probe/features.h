// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>

#include "apps/linear_probe/images.h"

namespace weft::linear_probe {

/// What a frozen backbone says of each image of a part, in the order of the set. Every rank has all of it.
struct Features {
  Tensor values;  ///< [images, width], f32, on the device
  Tensor labels;  ///< i64 [images], on the device
};

/// Runs `backbone` (images [N, side, side, 3] to [N, width]) once over the part, each rank over its share, and brings
/// the shares together. All ranks call it.
Features compute_features(const Images& images, data::Split split, const dist::World& ranks,
                          const std::function<Tensor(const Tensor&)>& backbone);

}  // namespace weft::linear_probe
