// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>

#include "apps/linear_probe/pictures.h"

namespace weft::linear_probe {

/// What a frozen backbone says of each picture of a part, in the order of the set. Every rank has all of it.
struct Features {
  Tensor values;  ///< [pictures, width], f32, on the device
  Tensor labels;  ///< i64 [pictures], on the device
};

/// Runs `backbone` (pictures [N, side, side, 3] to [N, width]) once over the part, each rank over its share, and brings
/// the shares together. All ranks call it.
Features compute_features(const Pictures& pictures, data::Split split, const support::Ranks& ranks,
                          const std::function<Tensor(const Tensor&)>& backbone);

}  // namespace weft::linear_probe
