// SPDX-License-Identifier: Apache-2.0
#include "io/weights/name_map.h"

#include "io/safetensors.h"
#include "nn/models/bert.h"
#include "nn/models/gpt.h"
#include "nn/models/make_model.h"
#include "nn/models/vision_transformer.h"
#include "tests/weights/fixture.h"
#include "train/load_weights.h"

namespace weft {
namespace {

using test::error_of;
using test::TemporaryFolder;
using Names = std::vector<std::string>;

TEST(NamePattern, Matches) {
  EXPECT_EQ(match_name("a.#.b", "a.12.b")->captures, Names{"12"});
  EXPECT_FALSE(match_name("a.#.b", "a..b"));
  EXPECT_FALSE(match_name("a.#.b", "a.x.b"));
  EXPECT_FALSE(match_name("a.#.b", "a.1.bc"));
  EXPECT_EQ(match_name("@.#.*", "0.7.x.y")->captures, (Names{"7", "x.y"}));
  EXPECT_EQ(match_name("*n.{q,k,v}.*", "bert.n.k.weight")->captures, (Names{"bert.", "weight"}));
  EXPECT_EQ(match_name("*n.{q,k,v}.*", "n.v.bias")->word, 2u);
  EXPECT_FALSE(match_name("*n.{q,k,v}.*", "n.o.bias"));
  EXPECT_FALSE(match_name("abc", "ab"));
  EXPECT_EQ(fill_name("x.#.{a,b}.*", {{"3", "w"}, 1}), "x.3.b.w");
}

/// A file of these tensors; element i of tensor t is 100 t + i.
std::unique_ptr<WeightsFile> file_of(const TemporaryFolder& folder,
                                     const std::vector<std::pair<std::string, Shape>>& all) {
  StateDict state;
  for (const auto& [name, sizes] : all)
    state.tensors.push_back(
        {name, Tensor::arange(sizes.numel(), DType::f32, {}, 100.0 * static_cast<double>(state.tensors.size()))
                   .reshape(sizes)});
  write_safetensors(folder / "weights.safetensors", state);
  return open_weights(folder / "weights.safetensors");
}

std::map<std::string, Shape> contents(const WeightsFile& file) {
  std::map<std::string, Shape> result;
  for (const auto& info : file.tensors()) {
    result[info.name] = info.sizes;
    EXPECT_EQ(file.read(static_cast<size_t>(file.find(info.name))).sizes(), info.sizes) << info.name;
  }
  return result;
}

/// Hugging Face's names of a DINOv2 with registers, one block of width 4, and the original's.
const std::vector<std::pair<std::string, Shape>> kHfDinov2{
    {"embeddings.cls_token", {1, 1, 4}},
    {"embeddings.mask_token", {1, 4}},
    {"embeddings.register_tokens", {1, 2, 4}},
    {"embeddings.position_embeddings", {1, 5, 4}},
    {"embeddings.patch_embeddings.projection.weight", {4, 3, 2, 2}},
    {"embeddings.patch_embeddings.projection.bias", {4}},
    {"encoder.layer.0.norm1.weight", {4}},
    {"encoder.layer.0.norm1.bias", {4}},
    {"encoder.layer.0.attention.attention.query.weight", {4, 4}},
    {"encoder.layer.0.attention.attention.query.bias", {4}},
    {"encoder.layer.0.attention.attention.key.weight", {4, 4}},
    {"encoder.layer.0.attention.attention.key.bias", {4}},
    {"encoder.layer.0.attention.attention.value.weight", {4, 4}},
    {"encoder.layer.0.attention.attention.value.bias", {4}},
    {"encoder.layer.0.attention.output.dense.weight", {4, 4}},
    {"encoder.layer.0.attention.output.dense.bias", {4}},
    {"encoder.layer.0.layer_scale1.lambda1", {4}},
    {"encoder.layer.0.norm2.weight", {4}},
    {"encoder.layer.0.norm2.bias", {4}},
    {"encoder.layer.0.mlp.fc1.weight", {16, 4}},
    {"encoder.layer.0.mlp.fc1.bias", {16}},
    {"encoder.layer.0.mlp.fc2.weight", {4, 16}},
    {"encoder.layer.0.mlp.fc2.bias", {4}},
    {"encoder.layer.0.layer_scale2.lambda1", {4}},
    {"encoder.layer.11.mlp.weights_in.weight", {20, 4}},
    {"encoder.layer.11.mlp.weights_out.bias", {4}},
    {"layernorm.weight", {4}},
    {"layernorm.bias", {4}},
};
const std::map<std::string, Shape> kDinov2{
    {"cls_token", {1, 1, 4}},
    {"mask_token", {1, 4}},
    {"register_tokens", {1, 2, 4}},
    {"pos_embed", {1, 5, 4}},
    {"patch_embed.proj.weight", {4, 3, 2, 2}},
    {"patch_embed.proj.bias", {4}},
    {"blocks.0.norm1.weight", {4}},
    {"blocks.0.norm1.bias", {4}},
    {"blocks.0.attn.qkv.weight", {12, 4}},
    {"blocks.0.attn.qkv.bias", {12}},
    {"blocks.0.attn.proj.weight", {4, 4}},
    {"blocks.0.attn.proj.bias", {4}},
    {"blocks.0.ls1.gamma", {4}},
    {"blocks.0.norm2.weight", {4}},
    {"blocks.0.norm2.bias", {4}},
    {"blocks.0.mlp.fc1.weight", {16, 4}},
    {"blocks.0.mlp.fc1.bias", {16}},
    {"blocks.0.mlp.fc2.weight", {4, 16}},
    {"blocks.0.mlp.fc2.bias", {4}},
    {"blocks.0.ls2.gamma", {4}},
    {"blocks.11.mlp.w12.weight", {20, 4}},
    {"blocks.11.mlp.w3.bias", {4}},
    {"norm.weight", {4}},
    {"norm.bias", {4}},
};

TEST(NameMap, HuggingFacesDinov2) {
  const TemporaryFolder folder;
  const StateDict before = file_of(folder, kHfDinov2)->read_all();
  auto file = renamed_weights(open_weights(folder / "weights.safetensors"), {.map = "hf_dinov2"});
  EXPECT_EQ(contents(*file), kDinov2);
  // q, k, v in this order, whatever the file's.
  const auto packed = file->read(static_cast<size_t>(file->find("blocks.0.attn.qkv.bias"))).to_vector<float>();
  std::vector<float> expected;
  for (const char* word : {"query", "key", "value"})
    for (const float value :
         before.tensor(str("encoder.layer.0.attention.attention.", word, ".bias")).to_vector<float>())
      expected.push_back(value);
  EXPECT_EQ(packed, expected);

  // And back: the same tensors under the same names.
  const auto back = renamed_weights(std::move(file), {.map = "to_hf_dinov2"});
  const StateDict after = back->read_all();
  ASSERT_EQ(after.tensors.size(), before.tensors.size());
  for (const NamedTensor& entry : before.tensors) {
    ASSERT_TRUE(after.tensor(entry.name).defined()) << entry.name;
    EXPECT_TRUE(test::same_bits(entry.tensor, after.tensor(entry.name).contiguous())) << entry.name;
  }
}

TEST(NameMap, AClassifierAroundDinov2) {
  const TemporaryFolder folder;
  file_of(folder, {{"dinov2.layernorm.weight", {4}}, {"classifier.weight", {10, 8}}});
  EXPECT_EQ(contents(*renamed_weights(open_weights(folder / "weights.safetensors"), {.map = "hf_dinov2"})),
            (std::map<std::string, Shape>{{"norm.weight", {4}}, {"classifier.weight", {10, 8}}}));
}

TEST(NameMap, ChunkedBlocksOfTheOriginal) {
  const TemporaryFolder folder;
  file_of(folder,
          {{"backbone.blocks.1.6.attn.qkv.weight", {3}}, {"backbone.cls_token", {1}}, {"dino_head.mlp.0.weight", {2}}});
  EXPECT_EQ(contents(*renamed_weights(open_weights(folder / "weights.safetensors"),
                                      {.prefix = "backbone.", .map = "dinov2"})),
            (std::map<std::string, Shape>{{"blocks.6.attn.qkv.weight", {3}}, {"cls_token", {1}}}));
}

TEST(NameMap, HuggingFacesBert) {
  const TemporaryFolder folder;
  const std::string layer = "bert.encoder.layer.3.";
  file_of(folder, {{"bert.embeddings.position_ids", {1, 8}},
                   {"bert.embeddings.word_embeddings.weight", {9, 4}},
                   {"bert.embeddings.LayerNorm.gamma", {4}},
                   {"bert.embeddings.LayerNorm.beta", {4}},
                   {layer + "attention.self.query.weight", {4, 4}},
                   {layer + "attention.self.key.weight", {4, 4}},
                   {layer + "attention.self.value.weight", {4, 4}},
                   {layer + "attention.output.dense.bias", {4}},
                   {layer + "attention.output.LayerNorm.weight", {4}},
                   {"classifier.bias", {2}}});
  auto file = renamed_weights(open_weights(folder / "weights.safetensors"), {.map = "hf_bert"});
  EXPECT_EQ(contents(*file), (std::map<std::string, Shape>{{"bert.embeddings.word_embeddings.weight", {9, 4}},
                                                           {"bert.embeddings.LayerNorm.weight", {4}},
                                                           {"bert.embeddings.LayerNorm.bias", {4}},
                                                           {layer + "attention.self.qkv.weight", {12, 4}},
                                                           {layer + "attention.self.proj.bias", {4}},
                                                           {layer + "attention.output.LayerNorm.weight", {4}},
                                                           {"classifier.bias", {2}}}));
  const auto back = renamed_weights(std::move(file), {.map = "to_hf_bert"});
  EXPECT_EQ(contents(*back).count(layer + "attention.self.value.weight"), 1u);
  EXPECT_EQ(contents(*back).count(layer + "attention.output.dense.bias"), 1u);
  EXPECT_EQ(back->tensors().size(), 9u);
}

TEST(NameMap, PrefixesComeAndGo) {
  const TemporaryFolder folder;
  file_of(folder, {{"module.backbone.w", {1}}, {"module.head.w", {2}}});
  const auto named = [&](const RenameOptions& options) {
    return contents(*renamed_weights(open_weights(folder / "weights.safetensors"), options));
  };
  EXPECT_EQ(named({}), (std::map<std::string, Shape>{{"backbone.w", {1}}, {"head.w", {2}}}));
  EXPECT_EQ(named({.prefix = "backbone."}), (std::map<std::string, Shape>{{"w", {1}}}));
  EXPECT_EQ(named({.prefix = "head.", .add_prefix = "x."}), (std::map<std::string, Shape>{{"x.w", {2}}}));
  EXPECT_EQ(named({.leave_out = "head."}), (std::map<std::string, Shape>{{"backbone.w", {1}}}));
  EXPECT_EQ(error_of([&] { named({.prefix = "encoder."}); }),
            "weights: expected names that begin with 'encoder.', got none, such as 'module.backbone.w'");
}

TEST(NameMap, WhatDoesNotFit) {
  const TemporaryFolder folder;
  const auto error = [&](const std::vector<std::pair<std::string, Shape>>& tensors, const std::string& map) {
    file_of(folder, tensors);
    return error_of([&] { renamed_weights(open_weights(folder / "weights.safetensors"), {.map = map}); });
  };
  const std::string self = "encoder.layer.0.attention.attention.";
  EXPECT_EQ(error({{self + "query.bias", {4}}, {self + "value.bias", {4}}}, "hf_dinov2"),
            "weights: 'blocks.0.attn.qkv.bias' is stacked from 3 tensors: expected '" + self + "key.bias', got none");
  EXPECT_EQ(error({{self + "query.weight", {4, 4}}, {self + "key.weight", {4, 5}}, {self + "value.weight", {4, 4}}},
                  "hf_dinov2"),
            "weights: 'blocks.0.attn.qkv.weight' is stacked: expected '" + self +
                "key.weight' as f32 with rows of [4,4], got f32[4,5]");
  EXPECT_EQ(error({{"blocks.0.attn.qkv.bias", {4}}}, "to_hf_dinov2"),
            "weights: 'blocks.0.attn.qkv.bias': expected rows for 3 equal parts, got shape [4]");
  EXPECT_EQ(error({{"norm.weight", {4}}, {"layernorm.weight", {4}}}, "hf_dinov2"),
            "weights: expected each name once after renaming, got 'norm.weight' twice, also from 'norm.weight'");
  EXPECT_EQ(error({{"w", {1}}}, "hf_dinov1"), "name map: there is no 'hf_dinov1'. Did you mean 'hf_dinov2'?");
}

// The real modules: their names become Hugging Face's, and back again, and load strictly.
template <class Model>
void expect_round_trip(Model& model, const std::string& map, const std::vector<std::string>& hugging_faces) {
  const TemporaryFolder folder;
  write_safetensors(folder / "own.safetensors", model.state_dict());
  const auto theirs = renamed_weights(open_weights(folder / "own.safetensors"), {.map = "to_" + map});
  for (const std::string& name : hugging_faces) EXPECT_GE(theirs->find(name), 0) << name;
  write_safetensors(folder / "theirs.safetensors", theirs->read_all());
  EXPECT_EQ(guess_name_map(theirs->tensors()), map);
  const StateDict before = read_safetensors(folder / "own.safetensors").state;
  for (const NamedTensor& parameter : model.parameters()) parameter.tensor.detach().fill_(7);
  EXPECT_TRUE(train::load_weights(model, folder / "theirs.safetensors", {.rename = {.map = "auto"}}).is_whole());
  for (const NamedTensor& entry : model.state_dict().tensors)
    EXPECT_TRUE(test::same_bits(entry.tensor.contiguous(), before.tensor(entry.name))) << entry.name;
}

TEST(NameMap, VisionTransformersOfWeft) {
  nn::VisionTransformerOptions options{.width = 8, .depth = 2, .heads = 2, .patch = 2, .image = 4, .classes = 0};
  options.registers = 2;
  options.layer_scale = 1;
  options.mask_token = true;
  std::vector<std::string> names;
  for (const auto& [name, sizes] : kHfDinov2)
    if (name.find("layer.11") == std::string::npos) names.push_back(name);
  nn::VisionTransformer model(options);
  expect_round_trip(model, "hf_dinov2", names);
  EXPECT_EQ(model.state_dict().tensors.size(), 4u + 2 + 2 * 14 + 2);  // as many as the published files have
  options.feed_forward = nn::FeedForward::swiglu;
  nn::VisionTransformer gated(options);
  expect_round_trip(gated, "hf_dinov2",
                    {"encoder.layer.1.mlp.weights_in.weight", "encoder.layer.1.mlp.weights_out.bias"});
}

TEST(NameMap, BertOfWeft) {
  nn::Bert model({.vocabulary = 11, .positions = 8, .width = 8, .depth = 2, .heads = 2, .hidden = 16});
  const std::string layer = "bert.encoder.layer.1.";
  expect_round_trip(
      model, "hf_bert",
      {"bert.embeddings.word_embeddings.weight", "bert.embeddings.position_embeddings.weight",
       "bert.embeddings.token_type_embeddings.weight", "bert.embeddings.LayerNorm.weight",
       layer + "attention.self.query.weight", layer + "attention.self.key.bias", layer + "attention.self.value.weight",
       layer + "attention.output.dense.weight", layer + "attention.output.LayerNorm.bias",
       layer + "intermediate.dense.weight", layer + "output.dense.bias", layer + "output.LayerNorm.weight",
       "bert.pooler.dense.weight", "classifier.weight"});
}

TEST(NameMap, RobertaOfWeft) {
  nn::Bert model({.kind = nn::BertKind::roberta,
                  .vocabulary = 11,
                  .positions = 8,
                  .token_types = 1,
                  .width = 8,
                  .depth = 2,
                  .heads = 2,
                  .hidden = 16});
  const std::string layer = "roberta.encoder.layer.1.";
  expect_round_trip(model, "hf_roberta",
                    {"roberta.embeddings.word_embeddings.weight", "roberta.embeddings.token_type_embeddings.weight",
                     layer + "attention.self.query.weight", layer + "attention.output.dense.weight",
                     layer + "attention.output.LayerNorm.bias", layer + "output.dense.bias", "classifier.dense.weight",
                     "classifier.dense.bias", "classifier.out_proj.weight", "classifier.out_proj.bias"});
}

TEST(NameMap, DistilBertOfWeft) {
  nn::Bert model({.kind = nn::BertKind::distilbert,
                  .vocabulary = 11,
                  .positions = 8,
                  .token_types = 0,
                  .width = 8,
                  .depth = 2,
                  .heads = 2,
                  .hidden = 16});
  const std::string layer = "distilbert.transformer.layer.1.";
  expect_round_trip(
      model, "hf_distilbert",
      {"distilbert.embeddings.word_embeddings.weight", "distilbert.embeddings.LayerNorm.bias",
       layer + "attention.q_lin.weight", layer + "attention.k_lin.bias", layer + "attention.v_lin.weight",
       layer + "attention.out_lin.weight", layer + "sa_layer_norm.weight", layer + "ffn.lin1.bias",
       layer + "ffn.lin2.weight", layer + "output_layer_norm.bias", "pre_classifier.weight", "classifier.weight"});
  EXPECT_FALSE(model.state_dict().tensor("bert.embeddings.token_type_embeddings.weight").defined());
}

TEST(NameMap, GptOfWeft) {
  nn::Gpt model({.vocabulary = 11, .positions = 8, .width = 8, .depth = 2, .heads = 2});
  const std::string layer = "h.1.";
  expect_round_trip(model, "hf_gpt2",
                    {"wte.weight", "wpe.weight", layer + "ln_1.weight", layer + "attn.c_attn.weight",
                     layer + "attn.c_attn.bias", layer + "attn.c_proj.weight", layer + "ln_2.bias",
                     layer + "mlp.c_fc.weight", layer + "mlp.c_proj.weight", "ln_f.weight", "ln_f.bias"});
  const TemporaryFolder folder;
  write_safetensors(folder / "own.safetensors", model.state_dict());
  const auto theirs =
      renamed_weights(open_weights(folder / "own.safetensors"), {.map = "to_hf_gpt2", .add_prefix = "transformer."});
  EXPECT_EQ(contents(*theirs)["transformer.h.1.attn.c_attn.weight"], (Shape{8, 24}));
  EXPECT_EQ(contents(*theirs)["transformer.h.1.mlp.c_proj.weight"], (Shape{32, 8}));
  const auto index = static_cast<size_t>(theirs->find("transformer.h.1.mlp.c_fc.weight"));
  const Tensor own = dynamic_cast<const nn::GptBlock&>(*model.h[1]).c_fc.weight;
  EXPECT_TRUE(test::same_bits(theirs->read(index), own.detach().transpose(0, 1).contiguous()));

  file_of(folder, {{"transformer.h.0.attn.bias", {1, 1, 8, 8}},
                   {"transformer.h.0.attn.c_attn.weight", {8, 24}},
                   {"lm_head.weight", {11, 8}}});
  EXPECT_EQ(contents(*renamed_weights(open_weights(folder / "weights.safetensors"), {.map = "hf_gpt2"})),
            (std::map<std::string, Shape>{{"h.0.attn.qkv.weight", {24, 8}}}));
  file_of(folder, {{"h.0.attn.c_attn.weight", {8}}});
  EXPECT_EQ(error_of([&] { renamed_weights(open_weights(folder / "weights.safetensors"), {.map = "hf_gpt2"}); }),
            "weights: 'h.0.attn.c_attn.weight': expected a matrix, got shape [8]");
}

// The names of both are equal: the matrix of queries, keys and values shows the layout of all.
TEST(NameMap, NanoGptsMatricesLieAsOurs) {
  const TemporaryFolder folder;
  file_of(folder, {{"_orig_mod.transformer.h.0.attn.c_attn.weight", {24, 8}},
                   {"_orig_mod.transformer.h.0.attn.c_proj.weight", {8, 8}},
                   {"_orig_mod.transformer.h.0.mlp.c_fc.weight", {32, 8}},
                   {"_orig_mod.lm_head.weight", {11, 8}}});
  EXPECT_EQ(guess_name_map(open_weights(folder / "weights.safetensors")->tensors()), "nanogpt");
  const auto file = renamed_weights(open_weights(folder / "weights.safetensors"), {.map = "auto"});
  EXPECT_EQ(contents(*file),
            (std::map<std::string, Shape>{
                {"h.0.attn.qkv.weight", {24, 8}}, {"h.0.attn.proj.weight", {8, 8}}, {"h.0.mlp.c_fc.weight", {32, 8}}}));
  const auto given = open_weights(folder / "weights.safetensors");
  const auto square = [](const WeightsFile& from, std::string_view name) {
    return from.read(static_cast<size_t>(from.find(name)));
  };
  EXPECT_TRUE(test::same_bits(square(*file, "h.0.attn.proj.weight"),
                              square(*given, "_orig_mod.transformer.h.0.attn.c_proj.weight")));
  file_of(folder, {{"transformer.h.0.attn.c_attn.weight", {8, 24}}});
  EXPECT_EQ(guess_name_map(open_weights(folder / "weights.safetensors")->tensors()), "hf_gpt2");
}

// torchvision's names need no map: a ResNet-50 has them, all 320 (161 parameters, 159 of batch norms).
TEST(NameMap, ResNetsHaveTorchvisionsNames) {
  const auto model = nn::make_model("resnet50", 1000);
  const StateDict state = model->state_dict();
  EXPECT_EQ(state.tensors.size(), 320u);
  for (const auto& [name, sizes] : std::map<std::string, Shape>{{"conv1.weight", {64, 3, 7, 7}},
                                                                {"layer1.0.downsample.0.weight", {256, 64, 1, 1}},
                                                                {"layer1.0.downsample.1.running_var", {256}},
                                                                {"layer3.5.conv2.weight", {256, 256, 3, 3}},
                                                                {"layer4.2.bn3.num_batches_tracked", {}},
                                                                {"fc.weight", {1000, 2048}}}) {
    ASSERT_TRUE(state.tensor(name).defined()) << name;
    EXPECT_EQ(state.tensor(name).sizes(), sizes) << name;
  }
}

}  // namespace
}  // namespace weft
