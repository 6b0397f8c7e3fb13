// SPDX-License-Identifier: Apache-2.0
#include "core/ops/reduction.h"

#include "core/ops/mean.h"
#include "core/ops/sum.h"

namespace weft {

Tensor reduced(const Tensor& losses, Reduction reduction) {
  return reduction == Reduction::none ? losses : reduction == Reduction::sum ? sum(losses) : mean(losses);
}

}  // namespace weft
