// SPDX-License-Identifier: Apache-2.0
#include "optim/layer_decay.h"

#include "optim/optimizers.h"
#include "tests/support/error_text.h"

namespace weft::optim {
namespace {

std::vector<NamedTensor> named(const std::vector<std::string>& names) {
  std::vector<NamedTensor> result;
  for (const std::string& name : names)
    result.push_back({name, Tensor::zeros(name.ends_with("weight") ? Shape{2, 2} : Shape{2}).requires_grad_()});
  return result;
}

/// `cls fc.weight` of each group, with rate and decay.
std::vector<std::string> table(const std::vector<ParameterGroup>& groups) {
  std::vector<std::string> rows;
  for (const ParameterGroup& group : groups) {
    std::string row = str(*group.lr, ' ', *group.weight_decay, ':');
    for (const NamedTensor& parameter : group.parameters) row += ' ' + parameter.name;
    rows.push_back(row);
  }
  return rows;
}

using testing::ElementsAre;

TEST(LayerDecay, GroupsByDepth) {
  const auto parameters = named({"m.cls", "m.embed.weight", "m.blocks.0.fc.weight", "m.blocks.0.fc.bias",
                                 "m.blocks.1.fc.weight", "m.norm.bias", "head.weight"});
  EXPECT_THAT(
      table(by_layer(parameters, {.lr = 8, .factor = 0.5, .weight_decay = 0.1})),
      ElementsAre("1 0.1: m.embed.weight", "1 0: m.cls", "2 0.1: m.blocks.0.fc.weight", "2 0: m.blocks.0.fc.bias",
                  "4 0.1: m.blocks.1.fc.weight", "8 0.1: head.weight", "8 0: m.norm.bias"));
  EXPECT_THAT(table(by_layer(parameters, {.lr = 8, .factor = 0.5, .weight_decay = 0.1, .decay_vectors = true})),
              ElementsAre("1 0.1: m.cls m.embed.weight", "2 0.1: m.blocks.0.fc.weight m.blocks.0.fc.bias",
                          "4 0.1: m.blocks.1.fc.weight", "8 0.1: m.norm.bias head.weight"));
}

TEST(LayerDecay, AFactorOfOneIsOneRate) {
  for (const ParameterGroup& group : by_layer(named({"e", "layer.3.b", "layer.11.b", "h"}), {.lr = 0.3, .factor = 1}))
    EXPECT_EQ(*group.lr, 0.3);
}

TEST(LayerDecay, Errors) {
  EXPECT_EQ(error_text([] { by_layer(named({"blocks.0.b"}), {.factor = 0}); }),
            "layer decay: expected a factor in (0, 1], got 0");
  EXPECT_EQ(error_text([] { by_layer(named({"fc.weight"}), {}); }),
            "layer decay: expected a parameter of a numbered block (blocks.0.…), which tells its depth, got none");
  EXPECT_EQ(error_text([] {
              by_layer(named({"layer1.0.b", "layer2.0.b", "fc.b"}), {});
            }),
            "layer decay: expected one list of numbered blocks, got 'layer1' and 'layer2'");
}

}  // namespace
}  // namespace weft::optim
