// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/random.h"
#include "core/ops/reduce.h"
#include "core/random.h"
#include "kernels/runtime/variants.h"
#include "nn/embedding.h"
#include "nn/models/bert.h"
#include "nn/models/dinov2.h"
#include "tests/support/error_text.h"

namespace weft::nn {
namespace {

using testing::HasSubstr;

TEST(PatchEmbed, IsTheConvolutionWhoseStrideIsItsSize) {
  manual_seed(3);
  const PatchEmbed embed(4, 3, 10);
  const Tensor x = normal({2, 8, 12, 3}, 0, 1, DType::f32);
  const Tensor convolved = embed.proj.Conv2d::forward(x).reshape({2, 6, 10});
  const std::vector<float> got = embed(x).to_vector<float>(), expected = convolved.to_vector<float>();
  ASSERT_EQ(embed(x).sizes(), (Shape{2, 6, 10}));
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-5);
  EXPECT_THAT(error_text([&] {
                embed(Tensor::zeros({1, 8, 10, 3}));
              }),
              HasSubstr("PatchEmbed: expected images whose sides are multiples of 4, got f32[1,8,10,3]"));
}

TEST(Embedding, GivesRowsAndSparesThePaddingRow) {
  Embedding table(5, 3, {.padding = 2});
  EXPECT_EQ(table.weight.select(0, 2).to_vector<float>(), (std::vector<float>{0, 0, 0}));
  const Tensor ids = Tensor::from(std::vector<int64_t>{4, 2, 4, 0}, {2, 2});
  const Tensor y = table(ids);
  ASSERT_EQ(y.sizes(), (Shape{2, 2, 3}));
  EXPECT_EQ(y.select(0, 0).select(0, 0).to_vector<float>(), table.weight.select(0, 4).to_vector<float>());
  sum(y).backward();
  EXPECT_EQ(table.weight.grad().to_vector<float>(), (std::vector<float>{1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 2}));
}

TEST(Embedding, SaysWhatIsWrong) {
  EXPECT_THAT(error_text([] { Embedding(0, 3); }), HasSubstr("Embedding: expected positive sizes, got 0 rows of 3"));
  EXPECT_THAT(error_text([] { Embedding(4, 3, {.padding = 4}); }),
              HasSubstr("Embedding: expected a padding row below 4, got 4"));
  for (const int64_t padding : {-2, 5})
    EXPECT_THAT(error_text([&] { EmbeddingBag(3, 2, {.padding = padding}); }),
                HasSubstr(str("EmbeddingBag: expected a padding row below 3, got ", padding)));
  EXPECT_THAT(error_text([] { Embedding(4, 3)(Tensor::zeros({2})); }),
              HasSubstr("Embedding: expected integers, got f32[2]"));
}

TEST(DropPath, DropsWholeEntriesAndKeepsTheMean) {
  manual_seed(11);
  DropPath drop(0.25);
  const Tensor x = Tensor::ones({4000, 2, 3});
  const std::vector<float> y = drop(x).to_vector<float>();
  int kept = 0;
  for (size_t n = 0; n < 4000; ++n) {
    for (size_t i = 1; i < 6; ++i) ASSERT_EQ(y[6 * n + i], y[6 * n]) << "entry " << n;
    ASSERT_TRUE(y[6 * n] == 0 || std::abs(y[6 * n] - 4.0f / 3) < 1e-6f);
    kept += y[6 * n] != 0;
  }
  EXPECT_NEAR(kept, 3000, 5 * std::sqrt(4000 * 0.25 * 0.75));
  drop.eval();
  EXPECT_TRUE(drop(x).is_same(x));
  EXPECT_THAT(error_text([] { DropPath(1.0); }), HasSubstr("DropPath: expected a probability in [0, 1), got 1"));
}

TEST(MultiHeadAttention, SaysWhatIsWrong) {
  EXPECT_THAT(error_text([] { MultiHeadAttention(10, 3); }),
              HasSubstr("MultiHeadAttention: expected a width that is a multiple of the heads, got 10 and 3"));
  const MultiHeadAttention attention(4, 2);
  const std::string text = "MultiHeadAttention: expected tokens [N, tokens, width], got f32[3,4] on cpu";
  EXPECT_EQ(error_text([&] { attention(Tensor::ones({3, 4})); }), text);
  KeysAndValues past;
  EXPECT_EQ(error_text([&] { attention.extend(Tensor::ones({3, 4}), past); }), text);
}

TEST(MultiHeadAttention, DropsWeightsInTrainingAlone) {
  manual_seed(5);
  MultiHeadAttention attention(8, 2, {.dropout = 0.5});
  const Tensor x = normal({2, 6, 8}, 0, 1, DType::f32);
  EXPECT_NE(attention(x).to_vector<float>(), attention(x).to_vector<float>());
  attention.eval();
  EXPECT_EQ(attention(x).to_vector<float>(), attention(x).to_vector<float>());
}

// --- LayerScale ------------------------------------------------------------------------------------------------------

/// x, y and all gradients of a block with LayerScale, and which of its last products had the factors in their weights.
struct Scaled {
  std::vector<std::vector<float>> values;
  int in_weights = 0;
};
Scaled run_scaled(TransformerBlock& block, const Tensor& from, DType precision) {
  Scaled got;
  const auto count = [&](const Module& layer, const Tensor&) {
    got.in_weights += ScaledLinear::factors_of(dynamic_cast<const Linear&>(layer)) != nullptr;
  };
  auto* const mlp = dynamic_cast<Mlp*>(block.mlp.get());
  Linear& last = mlp ? mlp->fc2 : dynamic_cast<SwiGlu&>(*block.mlp).w3;
  const int first_hooks = block.attn.proj.register_hooks(count, {}, Watch::calls);
  const int last_hooks = last.register_hooks(count, {}, Watch::calls);
  const Tensor x = from.detach().contiguous().requires_grad_();
  Tensor y;
  {
    const Autocast low(precision);
    y = block(x);
  }
  block.zero_grad();
  sum(mul(y, y)).backward();
  got.values = {y.to_vector<float>(), x.grad().to_vector<float>()};
  for (const auto& [name, parameter] : block.parameters())
    if (parameter.grad().defined()) got.values.push_back(parameter.grad().to_vector<float>());
  block.attn.proj.remove_hooks(first_hooks);
  last.remove_hooks(last_hooks);
  return got;
}

TransformerBlockOptions scaled_block(FeedForward kind) {
  return {.width = 8, .heads = 2, .hidden = 16, .feed_forward = kind, .layer_scale = 0.5};
}

TEST(LayerScale, InTheLastWeightIsThatOfTheResults) {
  for (const FeedForward kind : {FeedForward::mlp, FeedForward::swiglu})
    for (const DType precision : {DType::f32, DType::bf16}) {
      manual_seed(4);
      TransformerBlock block(scaled_block(kind));
      block.ls1->gamma.set_data(normal({8}, 0, 1, DType::f32));
      block.ls2->gamma.set_data(normal({8}, 0, 1, DType::f32));
      const Tensor x = normal({5, 13, 8}, 0, 1, DType::f32);  // 65 rows: at least 4 x 16
      const Scaled folded = run_scaled(block, x, precision);
      kernels::choose_variants("scaled_branches");
      const Scaled passed = run_scaled(block, x, precision);
      kernels::choose_variants("");
      EXPECT_EQ(folded.in_weights, 2);
      EXPECT_EQ(passed.in_weights, 0);
      ASSERT_EQ(folded.values.size(), passed.values.size());
      for (size_t k = 0; k < folded.values.size(); ++k) {
        double difference = 0, size = 0;
        for (size_t i = 0; i < folded.values[k].size(); ++i) {
          difference += std::pow(folded.values[k][i] - passed.values[k][i], 2);
          size += std::pow(passed.values[k][i], 2);
        }
        EXPECT_LE(std::sqrt(difference / size), precision == DType::f32 ? 2e-6 : 2e-2) << precision << ' ' << k;
      }
    }
}

TEST(LayerScale, StaysAPassWhereTheWeightCannotHaveIt) {
  manual_seed(4);
  TransformerBlock block(scaled_block(FeedForward::mlp));
  const Tensor x = normal({5, 13, 8}, 0, 1, DType::f32);
  const auto in_weights = [&](DType precision = DType::f32) { return run_scaled(block, x, precision).in_weights; };
  EXPECT_EQ(in_weights(), 2);
  EXPECT_EQ(in_weights(DType::f16), 0) << "1e-5 times a weight has few digits in f16";
  EXPECT_EQ(run_scaled(block, x.slice(0, 0, 3), DType::f32).in_weights, 1) << "39 rows are few beside 16 features";
  std::vector<float> seen;
  const int hooks = block.attn.register_hooks({}, [&](const Module&, const Tensor&, const Tensor& y) {
    seen = y.to_vector<float>();
    return Tensor();
  });
  EXPECT_EQ(in_weights(), 1) << "a hook sees the branch's own results";
  block.attn.remove_hooks(hooks);
  EXPECT_EQ(seen, block.attn(block.norm1(x)).to_vector<float>());
  block.attn.proj.weight.requires_grad_(false);
  EXPECT_EQ(in_weights(), 1) << "a frozen weight needs no gradient";
  block.ls1->gamma.requires_grad_(false);
  EXPECT_EQ(in_weights(), 2);
  use_fp8(block);
  EXPECT_EQ(in_weights(DType::bf16), 0) << "scales of 8 bits are measured on the weight itself";
}

// --- VisionTransformer ---------------------------------------------------------------------------------------------

VisionTransformerOptions tiny() {
  return {
      .width = 16, .depth = 3, .heads = 2, .patch = 4, .image = 16, .classes = 5, .registers = 2, .layer_scale = 0.5};
}

TEST(VisionTransformer, RecomputedBlocksGiveTheSameGradients) {
  VisionTransformerOptions options = tiny();
  options.drop_path = 0.3;  // random: the second run must draw the same
  std::vector<std::vector<float>> gradients;
  for (const bool recompute : {false, true}) {
    options.recompute = recompute;
    manual_seed(2);
    VisionTransformer model(options);
    const Tensor x = normal({3, 16, 16, 3}, 0, 1, DType::f32);
    mean(model(x)).backward();
    std::vector<float> all;
    for (const auto& [name, parameter] : model.parameters()) {
      ASSERT_TRUE(parameter.grad().defined()) << name;
      for (const float value : parameter.grad().to_vector<float>()) all.push_back(value);
    }
    gradients.push_back(all);
  }
  EXPECT_EQ(gradients[0], gradients[1]);
}

TEST(Bert, RecomputedLayersGiveTheSameGradients) {
  std::vector<std::vector<float>> gradients;
  for (const bool recompute : {false, true}) {
    manual_seed(2);
    Bert model({.vocabulary = 20,
                .positions = 8,
                .width = 16,
                .depth = 2,
                .heads = 2,
                .hidden = 32,
                .dropout = 0.3,  // random: the second run must draw the same
                .recompute = recompute});
    int runs = 0;
    model.layers.front()->register_hooks([&](const Module&, const Tensor&) { ++runs; }, {}, Watch::calls);
    mean(model(TokenBatch{randint({3, 5}, 0, 20), {}, Tensor::from(std::vector<int64_t>{5, 3, 4})})).backward();
    EXPECT_EQ(runs, recompute ? 2 : 1);
    std::vector<float>& all = gradients.emplace_back();
    for (const auto& [name, parameter] : model.parameters())
      for (const float value : parameter.grad().to_vector<float>()) all.push_back(value);
  }
  EXPECT_EQ(gradients[0], gradients[1]);
}

TEST(VisionTransformer, GivesTheLastBlocks) {
  manual_seed(2);
  VisionTransformer model(tiny());
  model.eval();
  const Tensor x = normal({2, 16, 16, 3}, 0, 1, DType::f32);
  const std::vector<VisionFeatures> features = model.last_blocks(x, 2);
  ASSERT_EQ(features.size(), 2u);
  EXPECT_EQ(features[1].class_token.to_vector<float>(), model.forward_features(x).class_token.to_vector<float>());
  EXPECT_NE(features[0].class_token.to_vector<float>(), features[1].class_token.to_vector<float>());
  EXPECT_EQ(features[0].patch_tokens.sizes(), (Shape{2, 16, 16}));
  EXPECT_EQ(features[0].registers.sizes(), (Shape{2, 2, 16}));
  EXPECT_EQ((*model.head)(features[1].class_token).to_vector<float>(), model(x).to_vector<float>());
  EXPECT_THAT(error_text([&] { model.last_blocks(x, 4); }),
              HasSubstr("VisionTransformer: expected 1 to 3 blocks, got 4"));
}

TEST(VisionTransformer, PositionsOfAnotherSizeLearnToo) {
  manual_seed(2);
  VisionTransformer model(tiny());
  mean(model(normal({1, 24, 8, 3}, 0, 1, DType::f32))).backward();
  const std::vector<float> gradient = model.pos_embed.grad().to_vector<float>();
  EXPECT_TRUE(std::any_of(gradient.begin() + 16, gradient.end(), [](float g) { return g != 0; }));
}

TEST(VisionTransformer, SaysWhatIsWrong) {
  VisionTransformerOptions options = tiny();
  options.image = 18;
  EXPECT_THAT(error_text([&] { VisionTransformer{options}; }),
              HasSubstr("VisionTransformer: expected an image side that is a multiple of the patch, got 18 and 4"));
  options = tiny();
  options.depth = 0;
  EXPECT_THAT(error_text([&] { VisionTransformer{options}; }),
              HasSubstr("VisionTransformer: expected at least one block, got 0"));
}

TEST(VisionTransformer, HasThePublishedNumberOfParameters) {
  const SkipInit sizes_alone;
  const auto count = [](const char* name) {
    VisionTransformer model(vit_options(name));
    return parameter_count(model);
  };
  // torchvision's vit_b_16, vit_l_16; timm's vit_small_patch16_224.
  EXPECT_EQ(count("vit_small16"), 22050664);
  EXPECT_EQ(count("vit_base16"), 86567656);
  EXPECT_EQ(count("vit_large16"), 304326632);
  EXPECT_THAT(error_text([] { vit_options("vit_smal16"); }),
              HasSubstr("vit_options: no transformer is called 'vit_smal16'. Did you mean 'vit_small16'?"));
}

TEST(Dinov2, HasThePublishedNumberOfParameters) {
  const SkipInit sizes_alone;
  EXPECT_EQ(parameter_count(*dinov2("dinov2_vitl14_reg")), 304372736);
  EXPECT_EQ(parameter_count(*dinov2("dinov2_vitl14")), 304372736 - 4 * 1024);
  EXPECT_EQ(parameter_count(*dinov2("dinov2_vitl14_reg")->blocks[0]), 12598272);
  EXPECT_EQ(dinov2_names().size(), 8u);
  for (const std::string& name : dinov2_names()) EXPECT_EQ(dinov2_options(name).image, 518) << name;
  EXPECT_THAT(error_text([] { dinov2_options("dinov2_vitl14_regs"); }),
              HasSubstr("dinov2: no backbone is called 'dinov2_vitl14_regs'. Did you mean 'dinov2_vitl14_reg'?"));
}

// --- BERT ----------------------------------------------------------------------------------------------------------

TEST(Bert, HasThePublishedNumberOfParameters) {
  const SkipInit sizes_alone;
  Bert base;
  EXPECT_EQ(parameter_count(base), 109482240 + 2 * 768 + 2);  // Hugging Face's BertModel, and the classifier
}

TEST(Bert, IgnoresWhatIsBehindTheLength) {
  manual_seed(4);
  Bert model({.vocabulary = 20, .positions = 8, .width = 16, .depth = 2, .heads = 2, .hidden = 32});
  model.eval();
  const Tensor lengths = Tensor::from(std::vector<int64_t>{3});
  const auto logits = [&](std::vector<int64_t> ids) {
    const auto count = static_cast<int64_t>(ids.size());
    return model(TokenBatch{.ids = Tensor::from(ids, {1, count}), .token_types = {}, .lengths = lengths})
        .to_vector<float>();
  };
  EXPECT_EQ(logits({5, 6, 7, 0, 0}), logits({5, 6, 7, 11, 12}));
  EXPECT_NE(logits({5, 6, 7, 0, 0}), logits({5, 6, 8, 0, 0}));
}

TEST(Bert, SaysWhatIsWrong) {
  Bert model({.vocabulary = 20, .positions = 4, .width = 16, .depth = 1, .heads = 2, .hidden = 32});
  EXPECT_THAT(error_text([&] {
                model(Tensor::zeros({1, 5}, DType::i64));
              }),
              HasSubstr("Bert: expected at most 4 tokens, got i64[1,5]"));
  EXPECT_THAT(error_text([&] { model(Tensor::zeros({5}, DType::i64)); }),
              HasSubstr("Bert: expected ids [N, tokens], got i64[5]"));
}

TEST(SkipInit, LeavesWeightsAloneWhileItLives) {
  manual_seed(1);
  {
    const SkipInit skip;
    const Linear untouched(3, 4);
    EXPECT_TRUE(untouched.weight.requires_grad());
  }
  const Linear drawn(3, 4);
  manual_seed(1);
  const Linear again(3, 4);  // the skipped one drew nothing
  EXPECT_EQ(drawn.weight.to_vector<float>(), again.weight.to_vector<float>());
}

}  // namespace
}  // namespace weft::nn
