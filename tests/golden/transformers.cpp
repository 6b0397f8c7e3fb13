// SPDX-License-Identifier: Apache-2.0
// What paper_models.py computed: resized positions, a DINOv2 of two blocks, a BERT of two layers, a GPT-2 of
// two blocks.
#include "core/ops/concat.h"
#include "core/ops/layers/losses.h"
#include "core/ops/layers/resize2d.h"
#include "nn/models/bert.h"
#include "nn/models/dinov2.h"
#include "nn/models/gpt.h"
#include "tests/golden/digest.h"

namespace weft::golden {
namespace {

const File& file() {
  static const File file("transformers");
  return file;
}

Tensor hashed(uint32_t seed, const Shape& sizes, DType dtype) {
  return Tensor::from(hashed_values(seed, sizes.numel()), sizes).to(dtype);
}

// Parameters under paper_models.py's names against the digests `prefix` + name.
void expect_gradients(nn::Module& model, const std::string& prefix) {
  uint32_t seed = 0;
  for (const auto& [name, parameter] : model.parameters()) {
    if (file().has(prefix + name))
      expect_digest(parameter.grad(), file()[prefix + name], seed, prefix + name);
    else
      EXPECT_FALSE(parameter.grad().defined()) << name;
    ++seed;
  }
}

class Transformers : public testing::TestWithParam<DType> {};

// --- positions -----------------------------------------------------------------------------------------------------

Tensor resized_positions(Size2d to, bool by_size) {
  Resize2dOptions options{.interpolation = Interpolation::bicubic, .antialias = by_size};
  if (!by_size) {
    options.scale.h = (static_cast<double>(to.h) + 0.1) / 37;
    options.scale.w = (static_cast<double>(to.w) + 0.1) / 37;
  }
  return resize2d(hashed(800, {1, 37, 37, 6}, DType::f32), to, options);
}

TEST(ResizedPositions, AreThoseOfBothPublishedConventions) {
  for (const Size2d to : {Size2d{16, 16}, Size2d{7, 7}, Size2d{11, 50}})
    for (const bool by_size : {false, true}) {
      const std::string name = std::string("positions.") + (by_size ? "by_size." : "by_scale.") + std::to_string(to.h) +
                               'x' + std::to_string(to.w);
      const Tensor got = resized_positions(to, by_size);
      const std::vector<double> expected = file()[name].to_vector<double>(), values = got.to_vector<double>();
      ASSERT_EQ(values.size(), expected.size()) << name;
      for (size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(values[i], expected[i], 1e-5) << name << " at " << i;
    }
}

TEST(Resize2d, EqualsInterpolate) {
  for (const bool cubic : {false, true})
    for (const bool antialias : {false, true})
      for (const Size2d to : {Size2d{5, 4}, Size2d{20, 31}}) {
        const std::string name = std::string(cubic ? "bicubic" : "bilinear") + (antialias ? ".antialias." : ".") +
                                 std::to_string(to.h) + 'x' + std::to_string(to.w);
        const Tensor got = resize2d(
            hashed(801, {2, 9, 12, 3}, DType::f32), to,
            {.interpolation = cubic ? Interpolation::bicubic : Interpolation::bilinear, .antialias = antialias});
        expect_close(got, file()[name], name, 1e-6);
      }
}

// --- DINOv2 --------------------------------------------------------------------------------------------------------

struct Vision {
  std::string kind;
  nn::VisionTransformerOptions options;
  Size2d image;
};

Vision vision(const std::string& kind, const std::string& size_of, Size2d image) {
  nn::VisionTransformerOptions options = nn::dinov2_options(size_of);
  options.depth = 2;
  options.classes = 10;
  return {kind, options, image};
}

Vision swiglu() {
  Vision small = vision("dinov2_swiglu", "dinov2_vitg14_reg", {112, 112});
  small.options.width = 128;
  small.options.heads = 2;
  small.options.hidden = 256;
  small.options.image = 8 * 14;
  return small;
}

std::shared_ptr<nn::VisionTransformer> model_of(const Vision& vision, DType dtype) {
  auto model = std::make_shared<nn::VisionTransformer>(vision.options);
  fill_parameters(*model);
  {
    const NoGrad no_grad;
    model->pos_embed.mul_(30);
  }
  model->to(dtype);
  return model;
}

void expect_vision(const Vision& vision, DType dtype) {
  const auto model = model_of(vision, dtype);
  const std::string name =
      vision.kind + '.' + std::to_string(vision.image.h) + 'x' + std::to_string(vision.image.w) + '.';
  const Tensor x = hashed(700, {2, vision.image.h, vision.image.w, 3}, dtype);
  const Tensor logits = (*model)(x);
  const Tensor loss = cross_entropy(logits, Tensor::from(std::vector<int64_t>{3, 8}));
  loss.backward();
  expect_close(logits, file()[name + "logits"], name + "logits", tolerance_of(dtype));
  expect_close(loss, file()[name + "loss"], name + "loss", tolerance_of(dtype));
  expect_gradients(*model, name + "gradient_digest.");

  const NoGrad no_grad;
  const nn::VisionFeatures features = model->forward_features(x);
  expect_close(features.class_token, file()[name + "class_token"], name + "class_token", tolerance_of(dtype));
  expect_digest(features.patch_tokens, file()[name + "patch_tokens_digest"], 900, name + "patch_tokens");
  ASSERT_EQ(features.registers.defined(), file().has(name + "registers_digest"));
  if (features.registers.defined())
    expect_digest(features.registers, file()[name + "registers_digest"], 901, name + "registers");
}

TEST_P(Transformers, Dinov2WithRegistersAt224) {
  expect_vision(vision("dinov2_reg", "dinov2_vits14_reg", {224, 224}), GetParam());
}
TEST_P(Transformers, Dinov2WithRegistersAt98) {
  expect_vision(vision("dinov2_reg", "dinov2_vits14_reg", {98, 98}), GetParam());
}
TEST_P(Transformers, Dinov2AtARectangle) { expect_vision(vision("dinov2", "dinov2_vits14", {98, 112}), GetParam()); }
TEST_P(Transformers, Dinov2WithSwigluAtItsOwnSize) { expect_vision(swiglu(), GetParam()); }

// --- BERT ----------------------------------------------------------------------------------------------------------

TEST_P(Transformers, BertWithPadding) {
  nn::Bert model(
      {.vocabulary = 200, .positions = 32, .width = 96, .depth = 2, .heads = 4, .hidden = 192, .classes = 3});
  fill_parameters(model);
  model.to(GetParam());
  model.eval();  // no dropout
  const std::vector<int64_t> lengths{11, 7, 1};
  std::vector<int64_t> ids, types;
  for (int64_t n = 0; n < 3; ++n)
    for (int64_t i = 0; i < 11; ++i) {
      ids.push_back(i < lengths[static_cast<size_t>(n)] ? 1 + (i * 37 + n * 71) % 199 : 0);
      types.push_back(i >= 5 ? 1 : 0);
    }
  const nn::TokenBatch batch{
      .ids = Tensor::from(ids, {3, 11}), .token_types = Tensor::from(types, {3, 11}), .lengths = Tensor::from(lengths)};
  const Tensor logits = model(batch);
  const Tensor loss = cross_entropy(logits, Tensor::from(std::vector<int64_t>{2, 0, 1}));
  loss.backward();
  expect_close(logits, file()["bert.logits"], "bert.logits", tolerance_of(GetParam()));
  expect_close(loss, file()["bert.loss"], "bert.loss", tolerance_of(GetParam()));
  uint32_t seed = 0;
  for (const auto& [name, parameter] : model.parameters()) {
    expect_digest(parameter.grad(), file()["bert.gradient_digest." + std::to_string(seed)], seed, name);
    ++seed;
  }
  EXPECT_FALSE(file().has("bert.gradient_digest." + std::to_string(seed))) << "the model lacks a parameter";
  const NoGrad no_grad;
  expect_close(model.encode(batch).select(1, 0), file()["bert.first_tokens"], "bert.first_tokens",
               tolerance_of(GetParam()));
}

// --- GPT-2 ---------------------------------------------------------------------------------------------------------

TEST_P(Transformers, GptWithTiedEmbedding) {
  const File expected("gpt");
  nn::Gpt model({.vocabulary = 61, .positions = 24, .width = 96, .depth = 2, .heads = 4});
  fill_parameters(model);
  model.to(GetParam());
  std::vector<int64_t> ids, next;
  for (int64_t n = 0; n < 3; ++n)
    for (int64_t i = 0; i < 21; ++i) {
      ids.push_back((i * 37 + n * 71) % 61);
      next.push_back(((i + 1) * 37 + n * 71) % 61);
    }
  const Tensor x = Tensor::from(ids, {3, 21});
  const Tensor logits = model(x);
  const Tensor loss = cross_entropy(logits, Tensor::from(next, {3, 21}));
  loss.backward();
  expect_close(logits, expected["logits"], "logits", tolerance_of(GetParam()));
  expect_close(loss, expected["loss"], "loss", tolerance_of(GetParam()));
  uint32_t seed = 0;
  for (const auto& [name, parameter] : model.parameters()) {
    expect_digest(parameter.grad(), expected["gradient_digest." + std::to_string(seed)], seed, name);
    ++seed;
  }
  EXPECT_FALSE(expected.has("gradient_digest." + std::to_string(seed))) << "the model lacks a parameter";

  // Token by token, with keys and values kept, the same logits.
  const NoGrad no_grad;
  std::vector<nn::KeysAndValues> past;
  std::vector<Tensor> parts{model.extend(x.slice(1, 0, 15), past)};
  for (int64_t i = 15; i < 21; ++i) parts.push_back(model.extend(x.slice(1, i, 1), past));
  expect_close(concat(parts, 1), expected["logits"], "logits with keys and values kept", tolerance_of(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Precisions, Transformers, testing::Values(DType::f32, DType::f64),
                         [](const auto& test) { return std::string(test.param == DType::f64 ? "f64" : "f32"); });

}  // namespace
}  // namespace weft::golden
