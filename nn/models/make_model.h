// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>

#include "nn/models/resnet.h"

namespace weft::nn {

/// A model's kind of input.
enum class ModelInput {
  images,  ///< [N, H, W, channels]
  tokens,  ///< i64 [N, tokens]
};

struct ModelOptions {
  int64_t classes = 1000;
  Stem stem = Stem::imagenet;  ///< for resnet18/34/50/101/152; other models have none, or their own
  int64_t channels = 3;        ///< channels of the images
  ModelInput input = ModelInput::images;
};

using ModelFactory = std::function<std::shared_ptr<Module>(const ModelOptions&)>;

/// The names that make_model() knows: resnet8, …, vit_tiny4, …, dinov2_vits14, … for images, bert_base, … for tokens,
/// and what add_model() added.
std::vector<std::string> model_names(ModelInput input = ModelInput::images);

/// A model by its name, with fresh weights, to logits [N, classes]. Errors: no such name for this input (with the
/// nearest known one), classes below 1.
std::shared_ptr<Module> make_model(const std::string& name, const ModelOptions& options);
std::shared_ptr<Module> make_model(const std::string& name, int64_t classes, Stem stem = Stem::imagenet,
                                   int64_t channels = 3);

/// Makes a program's own model known to make_model(). Errors: the name is taken.
void add_model(const std::string& name, ModelFactory factory, ModelInput input = ModelInput::images);

}  // namespace weft::nn
