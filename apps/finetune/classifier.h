// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "nn/models/bert.h"

namespace weft::finetune {

/// Bert as a function of one tensor, which data parallelism needs: input [N, 3, tokens] of TextLoader to logits [N,
/// classes].
struct Classifier : nn::Bert {
  using Bert::Bert;
  Tensor forward(const Tensor& x) const override;
};

}  // namespace weft::finetune
