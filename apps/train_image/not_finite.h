// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>

#include "core/state_dict.h"

namespace weft::train_image {

/// Says where a loss that is not finite began: in the weights (names the first), or in the first kernel whose output is
/// not finite when `step` (forward and loss of the same batch) runs again under watch.
/// Without `step` only the weights are looked at.
std::string explain_not_finite(const std::vector<NamedTensor>& parameters, const std::function<void()>& step);

}  // namespace weft::train_image
