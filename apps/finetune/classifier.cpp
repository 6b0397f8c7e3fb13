// SPDX-License-Identifier: Apache-2.0
#include "apps/finetune/classifier.h"

#include "core/ops/sum.h"

namespace weft::finetune {

Tensor Classifier::forward(const Tensor& x) const {
  const Tensor lengths = sum(x.select(1, 2), {1});
  return Bert::forward(nn::TokenBatch{x.select(1, 0).contiguous(), x.select(1, 1).contiguous(), lengths});
}

}  // namespace weft::finetune
