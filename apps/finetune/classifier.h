// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>

#include "nn/models/bert.h"

namespace weft::finetune {

/// Bert behind one tensor, as data parallelism hands it on: input [N, 3, tokens] of TextLoader to logits [N, classes].
struct Classifier : nn::Module {
  std::shared_ptr<nn::Bert> model;

  explicit Classifier(std::shared_ptr<nn::Bert> bert) : model(std::move(bert)) {}
  Tensor forward(const Tensor& x) const override;
  void fields(nn::Visitor& v) override { v("model", model); }
};

/// `bert_base` or `bert_tiny`.
nn::BertOptions bert_options(const std::string& name);

}  // namespace weft::finetune
