// SPDX-License-Identifier: Apache-2.0
#include "nn/models/make_model.h"

#include <algorithm>

#include "core/nearest.h"
#include "nn/models/cifar_resnet.h"
#include "nn/models/vision_transformer.h"

namespace weft::nn {
namespace {

using ImageNetFamily = std::shared_ptr<ResNet> (*)(ResNetOptions);
using CifarFamily = std::shared_ptr<CifarResNet> (*)(CifarResNetOptions);

struct Model {
  const char* name;
  ImageNetFamily imagenet = nullptr;
  CifarFamily cifar = nullptr;
};

constexpr Model kModels[] = {
    {.name = "resnet8", .cifar = resnet8},        {.name = "resnet18", .imagenet = resnet18},
    {.name = "resnet20", .cifar = resnet20},      {.name = "resnet32", .cifar = resnet32},
    {.name = "resnet34", .imagenet = resnet34},   {.name = "resnet44", .cifar = resnet44},
    {.name = "resnet50", .imagenet = resnet50},   {.name = "resnet56", .cifar = resnet56},
    {.name = "resnet101", .imagenet = resnet101}, {.name = "resnet110", .cifar = resnet110},
    {.name = "resnet152", .imagenet = resnet152},
};

}  // namespace

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const Model& model : kModels) names.emplace_back(model.name);
  const std::vector<std::string> transformers = vit_names();
  names.insert(names.end(), transformers.begin(), transformers.end());
  return names;
}

std::shared_ptr<Module> make_model(const std::string& name, int64_t classes, Stem stem, int64_t channels) {
  WEFT_CHECK(classes >= 1, "make_model: expected at least one class, got ", classes);
  for (const Model& model : kModels) {
    if (name != model.name) continue;
    if (model.cifar) return model.cifar({.classes = classes, .channels = channels});
    return model.imagenet({.classes = classes, .stem = stem, .channels = channels});
  }
  const std::vector<std::string> transformers = vit_names();
  if (std::find(transformers.begin(), transformers.end(), name) != transformers.end()) {
    VisionTransformerOptions options = vit_options(name, classes);
    options.channels = channels;
    return std::make_shared<VisionTransformer>(options);
  }
  fail("make_model: no model is called '", name, "'.", suggestion(name, model_names()));
}

}  // namespace weft::nn
