// SPDX-License-Identifier: Apache-2.0
#include <cctype>
#include <iterator>
#include <sstream>

#include "core/autograd.h"
#include "core/ops/random.h"
#include "nn/init.h"
#include "nn/models/cifar_resnet.h"
#include "nn/models/dinov2.h"
#include "nn/models/make_model.h"
#include "nn/summary.h"
#include "tests/nn/leaves.h"
#include "tests/support/error_text.h"

namespace weft::nn {
namespace {

using testing::ElementsAre;

int64_t count(const std::string& name, int64_t classes, Stem stem = Stem::imagenet) {
  return parameter_count(*make_model(name, classes, stem));
}

// torchvision's documentation, "num_params" of the pre-trained weights with 1000 classes.
TEST(Models, ParameterCountsOfTheImageNetFamily) {
  EXPECT_EQ(count("resnet18", 1000), 11689512);
  EXPECT_EQ(count("resnet34", 1000), 21797672);
  EXPECT_EQ(count("resnet50", 1000), 25557032);
  EXPECT_EQ(count("resnet101", 1000), 44549160);
  EXPECT_EQ(count("resnet152", 1000), 60192808);
}

// He et al. 2016, table 6: 0.27M, 0.46M, 0.66M, 0.85M, 1.7M.
TEST(Models, ParameterCountsOfTheCifarFamily) {
  EXPECT_EQ(count("resnet20", 10), 269722);
  EXPECT_EQ(count("resnet32", 10), 464154);
  EXPECT_EQ(count("resnet44", 10), 658586);
  EXPECT_EQ(count("resnet56", 10), 853018);
  EXPECT_EQ(count("resnet110", 10), 1727962);
}

TEST(Models, NamesAreTorchvisions) {
  const StateDict basic = make_model("resnet18", 1000)->state_dict();
  EXPECT_EQ(basic.tensors.size(), 122u);
  EXPECT_EQ(basic.tensors.front().name, "conv1.weight");
  EXPECT_EQ(basic.tensor("conv1.weight").sizes(), (Shape{64, 3, 7, 7}));
  EXPECT_EQ(basic.tensor("layer2.0.downsample.0.weight").sizes(), (Shape{128, 64, 1, 1}));
  EXPECT_TRUE(basic.tensor("layer2.0.downsample.1.num_batches_tracked").defined());
  EXPECT_FALSE(basic.tensor("layer1.0.downsample.0.weight").defined());
  EXPECT_EQ(basic.tensor("fc.weight").sizes(), (Shape{1000, 512}));
  const StateDict bottleneck = make_model("resnet50", 7)->state_dict();
  EXPECT_EQ(bottleneck.tensors.size(), 320u);
  EXPECT_EQ(bottleneck.tensor("layer1.0.downsample.0.weight").sizes(), (Shape{256, 64, 1, 1}));
  EXPECT_EQ(bottleneck.tensor("layer4.2.conv3.weight").sizes(), (Shape{2048, 512, 1, 1}));
  const StateDict cifar = make_model("resnet20", 10)->state_dict();
  EXPECT_EQ(cifar.tensor("layer3.2.conv2.weight").sizes(), (Shape{64, 64, 3, 3}));
  EXPECT_EQ(cifar.tensor("linear.bias").sizes(), (Shape{10}));
}

TEST(Models, EveryMemberIsNamedAndTakesPart) {
  for (const std::string name : {"resnet8", "resnet18", "resnet20", "resnet50"}) {  // others: more of the same blocks
    const auto model = make_model(name, 3, Stem::cifar);
    const Tensor x = normal({2, 8, 8, 3});
    EXPECT_EQ(forgotten_members(*model, x), 0u) << name;
    EXPECT_EQ(idle_members(*model, x), 0u) << name;
  }
}

// One registry makes all of them; DINOv2's backbones get a head, BERT takes tokens.
TEST(Models, FamiliesAreKnownByName) {
  const SkipInit sizes_alone;
  EXPECT_EQ(count("vit_base16", 1000), 86567656);
  EXPECT_EQ(count("dinov2_vits14", 10), parameter_count(*dinov2("dinov2_vits14")) + 10 * 384 + 10);
  const auto bert = make_model("bert_tiny", {.classes = 3, .input = ModelInput::tokens});
  EXPECT_EQ(bert->state_dict().tensor("classifier.weight").sizes(), (Shape{3, 128}));
  EXPECT_THAT(model_names(), testing::IsSupersetOf({"resnet8", "resnet152", "vit_tiny4", "dinov2_vitg14_reg"}));
  EXPECT_THAT(model_names(ModelInput::tokens),
              ElementsAre("bert_base", "bert_tiny", "roberta_base", "distilbert_base"));
  EXPECT_THAT(error_text([] { make_model("bert_base", 10); }), testing::HasSubstr("no model is called 'bert_base'"));
}

TEST(Models, AProgramAddsItsOwn) {
  const auto make = [](const ModelOptions& o) { return std::make_shared<Linear>(o.channels, o.classes); };
  add_model("plane", make);
  EXPECT_EQ(parameter_count(*make_model("plane", {.classes = 5, .channels = 2})), 15);
  EXPECT_THAT(model_names(), testing::Contains("plane"));
  EXPECT_EQ(error_text([&] { add_model("plane", make); }), "add_model: there is a model 'plane' already");
}

TEST(Models, StemsSetTheSizes) {
  const NoGrad no_grad;
  const auto sizes_before_pool = [](Stem stem) {
    const auto model = resnet18({.classes = 2, .stem = stem});
    Shape sizes;
    model->layer4.register_hooks({}, [&](const Module&, const Tensor&, const Tensor& y) {
      sizes = y.sizes();
      return Tensor();
    });
    model->eval();
    (*model)(Tensor::zeros({1, 32, 32, 3}));
    return sizes;
  };
  EXPECT_EQ(sizes_before_pool(Stem::imagenet), (Shape{1, 1, 1, 512}));
  EXPECT_EQ(sizes_before_pool(Stem::cifar), (Shape{1, 4, 4, 512}));
}

TEST(Models, CifarFamilyTakesOddImages) {
  const NoGrad no_grad;
  EXPECT_EQ((*resnet8({.classes = 4, .channels = 1}))(Tensor::zeros({2, 7, 9, 1})).sizes(), (Shape{2, 4}));
}

TEST(Models, AnUnknownNameSuggests) {
  EXPECT_EQ(error_text([] { make_model("resnet19", 10); }),
            "make_model: no model is called 'resnet19'. Did you mean 'resnet18'?");
  EXPECT_EQ(error_text([] { make_model("resnet18", 0); }), "make_model: expected at least one class, got 0");
}

TEST(Summary, ListsLayersAndTotals) {
  const auto model = resnet8();
  model->layer2.eval();
  const std::string table = summary(*model, {1, 32, 32, 3});
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream cells(line);
    rows.emplace_back(std::istream_iterator<std::string>(cells), std::istream_iterator<std::string>());
  }
  ASSERT_EQ(rows.size(), 1u + 7 * 2 + 1 + 1);  // the head, seven convolutions with their norms, the Linear, the total
  EXPECT_THAT(rows[0], ElementsAre("layer", "kind", "output", "parameters", "FLOPs"));
  // 3x3x16 weights for each of 32 channels; one product and sum with each at 16x16 places.
  EXPECT_THAT(rows[7], ElementsAre("layer2.0.conv1", "Conv2d", "[1,16,16,32]", "4,608", "2,359,296"));
  EXPECT_THAT(rows[15], ElementsAre("linear", "Linear", "[1,10]", "650", "1,280"));
  EXPECT_THAT(rows[16], ElementsAre("total", "CifarResNet", "[1,10]", "75,290", testing::_));
  EXPECT_TRUE(model->is_training());
  EXPECT_FALSE(model->layer2.is_training()) << "each module gets back its own mode";
  EXPECT_EQ(summary(*model, {1, 32, 32, 3}), table) << "the hooks are gone";
}

// 1.8 and 3.6 * 10^9 multiply-adds: He et al. 2016, table 1; 4.089 for resnet50 with the stride in the 3x3.
TEST(Summary, FlopsOfResNets) {
  const auto total = [](const std::string& name) {
    const auto model = make_model(name, 1000);
    const std::string table = summary(*model, {1, 224, 224, 3});
    std::string digits;
    for (const char c : table.substr(table.rfind(' ')))
      if (std::isdigit(static_cast<unsigned char>(c))) digits += c;
    return std::stod(digits);
  };
  EXPECT_NEAR(total("resnet18") / 2e9, 1.814, 0.0005);
  EXPECT_NEAR(total("resnet50") / 2e9, 4.089, 0.0005);
}

}  // namespace
}  // namespace weft::nn
