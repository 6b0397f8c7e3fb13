// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "nn/models/resnet.h"

namespace weft::nn {

/// The names that make_model() knows: resnet8, resnet18, resnet20, …, vit_tiny4, vit_small16, …
std::vector<std::string> model_names();

/// A model by its name. The stem counts for resnet18/34/50/101/152; the CIFAR family (resnet8/20/32/44/56/110) has its
/// own, the transformers none. `channels`: of the pictures. Errors: an unknown name (with the nearest known one),
/// classes below 1.
std::shared_ptr<Module> make_model(const std::string& name, int64_t classes, Stem stem = Stem::imagenet,
                                   int64_t channels = 3);

}  // namespace weft::nn
