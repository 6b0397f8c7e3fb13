// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// y = e^x / sum(e^x) along `dim`, computed with the maximum subtracted. Under autocast in f32.
Tensor softmax(const Tensor& x, Integer dim = -1);

/// y = x - log(sum(e^x)) along `dim`, computed with the maximum subtracted. Under autocast in f32.
Tensor log_softmax(const Tensor& x, Integer dim = -1);

}  // namespace weft
