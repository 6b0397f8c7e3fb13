// SPDX-License-Identifier: Apache-2.0
#include "apps/finetune/classifier.h"

#include "core/ops/sum.h"

namespace weft::finetune {

Tensor Classifier::forward(const Tensor& x) const {
  const Tensor lengths = sum(x.select(1, 2), {1});
  return (*model)(nn::TokenBatch{x.select(1, 0).contiguous(), x.select(1, 1).contiguous(), lengths});
}

nn::BertOptions bert_options(const std::string& name) {
  nn::BertOptions options;
  if (name == "bert_tiny") {
    options.width = 128;
    options.depth = 2;
    options.heads = 2;
    options.hidden = 512;
  }
  return options;
}

}  // namespace weft::finetune
