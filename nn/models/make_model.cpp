// SPDX-License-Identifier: Apache-2.0
#include "nn/models/make_model.h"

#include "core/text.h"
#include "nn/models/bert.h"
#include "nn/models/cifar_resnet.h"
#include "nn/models/dinov2.h"

namespace weft::nn {
namespace {

struct Model {
  std::string name;
  ModelFactory make;
  ModelInput input = ModelInput::images;
};

ModelFactory imagenet(std::shared_ptr<ResNet> (*make)(ResNetOptions)) {
  return [make](const ModelOptions& o) { return make({.classes = o.classes, .stem = o.stem, .channels = o.channels}); };
}

ModelFactory cifar(std::shared_ptr<CifarResNet> (*make)(CifarResNetOptions)) {
  return [make](const ModelOptions& o) { return make({.classes = o.classes, .channels = o.channels}); };
}

ModelFactory transformer(VisionTransformerOptions options) {
  return [options](const ModelOptions& o) {
    VisionTransformerOptions all = options;
    all.classes = o.classes, all.channels = o.channels;
    return std::make_shared<VisionTransformer>(all);
  };
}

ModelFactory bert(BertOptions options) {
  return [options](const ModelOptions& o) {
    BertOptions all = options;
    all.classes = o.classes;
    return std::make_shared<Bert>(all);
  };
}

std::vector<Model>& registry() {
  static std::vector<Model> models = [] {
    std::vector<Model> all{
        {"resnet8", cifar(resnet8)},      {"resnet18", imagenet(resnet18)},   {"resnet20", cifar(resnet20)},
        {"resnet32", cifar(resnet32)},    {"resnet34", imagenet(resnet34)},   {"resnet44", cifar(resnet44)},
        {"resnet50", imagenet(resnet50)}, {"resnet56", cifar(resnet56)},      {"resnet101", imagenet(resnet101)},
        {"resnet110", cifar(resnet110)},  {"resnet152", imagenet(resnet152)},
    };
    // These families are a table of sizes each, a line per model.
    for (const std::string& name : vit_names()) all.push_back({name, transformer(vit_options(name))});
    for (const std::string& name : dinov2_names()) all.push_back({name, transformer(dinov2_options(name))});
    for (const std::string& name : bert_names()) all.push_back({name, bert(bert_options(name)), ModelInput::tokens});
    return all;
  }();
  return models;
}

}  // namespace

std::vector<std::string> model_names(ModelInput input) {
  std::vector<std::string> names;
  for (const Model& model : registry())
    if (model.input == input) names.push_back(model.name);
  return names;
}

std::shared_ptr<Module> make_model(const std::string& name, const ModelOptions& options) {
  WEFT_CHECK(options.classes >= 1, "make_model: expected at least one class, got ", options.classes);
  for (const Model& model : registry())
    if (name == model.name && options.input == model.input) return model.make(options);
  fail("make_model: no model is called '", name, "'.", suggestion(name, model_names(options.input)));
}

std::shared_ptr<Module> make_model(const std::string& name, int64_t classes, Stem stem, int64_t channels) {
  return make_model(name, {.classes = classes, .stem = stem, .channels = channels});
}

void add_model(const std::string& name, ModelFactory factory, ModelInput input) {
  for (const Model& model : registry())
    WEFT_CHECK(name != model.name, "add_model: there is a model '", name, "' already");
  registry().push_back({name, std::move(factory), input});
}

}  // namespace weft::nn
