// SPDX-License-Identifier: Apache-2.0
#include "dist/fsdp/wrap_policy.h"

#include <gmock/gmock.h>

#include "dist/fsdp/unit_layout.h"
#include "dist/tensor/parallel_block.h"
#include "nn/activation.h"
#include "nn/models/bert.h"
#include "nn/models/cifar_resnet.h"
#include "nn/models/dinov2.h"
#include "nn/models/gpt.h"
#include "nn/models/resnet.h"
#include "nn/sequential.h"
#include "tests/dist/fsdp/sharded_training.h"

namespace weft::dist::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> paths(nn::Module& model, const WrapPolicy& policy) {
  std::vector<std::string> result;
  for (const auto& [path, module] : choose_units(model, policy)) result.push_back(path);
  return result;
}

TEST(WrapPolicy, ByKind) {
  const auto model = nn::resnet8();
  EXPECT_THAT(paths(*model, {}), IsEmpty());
  EXPECT_THAT(paths(*model, {.kinds = {"CifarBlock"}}), ElementsAre("layer1.0", "layer2.0", "layer3.0"));
  EXPECT_THAT(paths(*model, {.kinds = {"CifarBlock", "Linear"}}),
              ElementsAre("layer1.0", "layer2.0", "layer3.0", "linear"));
  EXPECT_THAT(
      paths(*nn::sequential(std::make_shared<nn::ReLU>(), std::make_shared<nn::Linear>(2, 2)), {.kinds = {"ReLU"}}),
      IsEmpty())
      << "nothing to shard";
}

/// A backbone and a classifier, as `linear_probe` trains them.
struct Probe : nn::Module {
  std::shared_ptr<nn::VisionTransformer> m;
  nn::Linear linear{1024, 100};

  Probe() : m(nn::dinov2("dinov2_vitl14_reg")) {}
  void fields(nn::Visitor& v) override {
    v("m", m);
    v("linear", linear);
  }
};

// The units of PyTorch's size_based_auto_wrap_policy for the same model at these two sizes.
TEST(WrapPolicy, OfALargeVisionTransformer) {
  const nn::SkipInit sizes_alone;
  Probe probe;
  std::vector<std::string> blocks, products{"m"};
  for (int i = 0; i < 24; ++i) {
    blocks.push_back(str("m.blocks.", i));
    for (const char* product : {"attn.qkv", "attn.proj", "mlp.fc1", "mlp.fc2"})
      products.push_back(str("m.blocks.", i, '.', product));
  }
  EXPECT_EQ(paths(probe, {.min_num_params = 10'000'000}), blocks);
  EXPECT_EQ(paths(probe, {.min_num_params = 1'000'000}), products);
}

TEST(WrapPolicy, ABlockOfATransformerIsAUnit) {
  const nn::SkipInit sizes_alone;
  Probe probe;
  std::vector<std::string> blocks;
  for (int i = 0; i < 24; ++i) blocks.push_back(str("m.blocks.", i));
  EXPECT_EQ(paths(probe, wrap_policy(probe, 0)), blocks);
  nn::Gpt gpt({.vocabulary = 11, .positions = 4, .width = 8, .depth = 2, .heads = 2});
  EXPECT_THAT(paths(gpt, wrap_policy(gpt, 0)), ElementsAre("h.0", "h.1"));
  divide_blocks(gpt, make_process_group_alone());
  EXPECT_THAT(paths(gpt, wrap_policy(gpt, 0)), ElementsAre("h.0", "h.1"));
  nn::Bert bert({.vocabulary = 11, .positions = 4, .width = 8, .depth = 2, .heads = 2, .hidden = 16});
  EXPECT_THAT(paths(bert, wrap_policy(bert, 0)), ElementsAre("bert.encoder.layer.0", "bert.encoder.layer.1"));
  const auto convolutions = nn::resnet50({.classes = 1000});
  EXPECT_EQ(paths(*convolutions, wrap_policy(*convolutions, 0)), paths(*convolutions, {.min_num_params = 1'000'000}));
  EXPECT_EQ(paths(probe, wrap_policy(probe, 1'000'000)), paths(probe, {.min_num_params = 1'000'000}));
}

// A block of width 10 has 20 (norm) + 220 (fc1) + 210 (fc2) parameters.
TEST(WrapPolicy, BySizeDeepestFirst) {
  Tower model(6, 10, 2, 4);
  EXPECT_THAT(paths(model, {.min_num_params = 450}), ElementsAre("blocks.0", "blocks.1"));
  EXPECT_THAT(paths(model, {.min_num_params = 451}), IsEmpty()) << "the root is a unit anyway";
  EXPECT_THAT(paths(model, {.min_num_params = 220}),
              ElementsAre("blocks.0", "blocks.0.fc1", "blocks.1", "blocks.1.fc1"))
      << "of a block, 230 are left when fc1 is taken";
  EXPECT_THAT(paths(model, {.min_num_params = 210}),
              ElementsAre("blocks.0.fc1", "blocks.0.fc2", "blocks.1.fc1", "blocks.1.fc2"))
      << "20 are left, which the root takes";
}

TEST(WrapPolicy, ASharedModuleIsOneUnit) {
  const auto shared = std::make_shared<nn::Linear>(3, 3);
  EXPECT_THAT(paths(*nn::sequential(shared, std::make_shared<nn::ReLU>(), shared), {.kinds = {"Linear"}}),
              ElementsAre("0"));
}

std::vector<std::string> names(const UnitLayout::Buffer& buffer) {
  std::vector<std::string> result;
  for (const NamedTensor& parameter : buffer.parameters) result.push_back(parameter.name);
  return result;
}

TEST(UnitLayout, BuffersByPrecisionAndTraining) {
  Tower model(6, 10, 1, 4);
  model.blocks[0]->fc2.bias.requires_grad_(false);
  const UnitLayout layout = lay_out_units(model, {.kinds = {"Block"}}, {.param = DType::bf16, .kinds = {"Linear"}});
  ASSERT_EQ(layout.units.size(), 2u);
  EXPECT_EQ(layout.units[0].name, "root");
  const std::vector<UnitLayout::Buffer>& block = layout.units[1].buffers;
  ASSERT_EQ(block.size(), 3u);
  EXPECT_THAT(names(block[0]), ElementsAre("blocks.0.norm.weight", "blocks.0.norm.bias"));
  EXPECT_EQ(block[0].suffix(), "");
  EXPECT_THAT(names(block[1]), ElementsAre("blocks.0.fc1.weight", "blocks.0.fc2.weight", "blocks.0.fc1.bias"))
      << "matrices first";
  EXPECT_EQ(block[1].suffix(), " (low)");
  EXPECT_THAT(names(block[2]), ElementsAre("blocks.0.fc2.bias"));
  EXPECT_EQ(block[2].suffix(), " (low, frozen)");
}

}  // namespace
}  // namespace weft::dist::testing
