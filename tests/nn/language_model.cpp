// SPDX-License-Identifier: Apache-2.0
// Rows of several documents, and several prompts at once: each is as it is alone.
#include "nn/models/language_model.h"

#include <optional>

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/concat.h"
#include "core/ops/layers/losses.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "core/random.h"
#include "nn/models/decoder.h"
#include "nn/models/gpt.h"
#include "tests/support/devices.h"
#include "tests/support/error_text.h"

namespace weft::nn {
namespace {

using testing::HasSubstr;
using Ids = std::vector<int64_t>;

constexpr int64_t kVocabulary = 13;

std::vector<std::shared_ptr<LanguageModel>> some_models(Device device, bool recompute = false) {
  manual_seed(5);
  const DecoderOptions small{.vocabulary = kVocabulary,
                             .positions = 40,
                             .width = 16,
                             .depth = 2,
                             .heads = 4,
                             .groups = 2,
                             .qk_norm = true,
                             .recompute = recompute};
  DecoderOptions window = small;
  window.window = 3;
  std::vector<std::shared_ptr<LanguageModel>> models{
      std::make_shared<Decoder>(small), std::make_shared<Decoder>(window),
      std::make_shared<Gpt>(GptOptions{
          .vocabulary = kVocabulary, .positions = 40, .width = 16, .depth = 2, .heads = 2, .recompute = recompute})};
  for (const auto& model : models) model->to(device);
  return models;
}

Ids some_text(int64_t length, int64_t seed) {
  Ids ids;
  for (int64_t i = 0; i < length; ++i) ids.push_back((i * i * 5 + seed * (i + 1)) % kVocabulary);
  return ids;
}

// Two rows of 40: documents of 1, 20, 2 and 17 tokens, and of 38 and 2.
const std::vector<Ids> kLengths{{1, 20, 2, 17}, {38, 2}};

TEST(LanguageModel, DocumentsInARowAreAsAlone) {
  for (const DeviceKind kind : tests::test_devices())
    for (const bool recompute : {false, true})
      for (const auto& model : some_models(Device{kind}, recompute)) {
        const Device device = Device{kind};
        std::vector<Tensor> rows;
        Tensor alone_sum;
        std::vector<std::vector<float>> alone;
        for (size_t row = 0; row < kLengths.size(); ++row) {
          Ids ids, starts;
          for (const int64_t length : kLengths[row]) {
            const Ids text = some_text(length, static_cast<int64_t>(ids.size()) + 3 * length);
            starts.insert(starts.end(), text.size(), static_cast<int64_t>(ids.size()));
            ids.insert(ids.end(), text.begin(), text.end());
            const Tensor x = Tensor::from(text, {1, length}, device);
            const Tensor logits = (*model)(x);
            const Tensor loss = cross_entropy(logits, x, {.reduction = Reduction::sum});
            alone_sum = alone_sum.defined() ? alone_sum + loss : loss;
            alone.push_back(logits.detach().to(Device{}).flatten().to_vector<float>());
          }
          ids.insert(ids.end(), starts.begin(), starts.end());
          rows.push_back(Tensor::from(ids, {1, 2, 40}, device));
        }
        alone_sum.backward();
        std::vector<std::vector<float>> gradients;
        for (const NamedTensor& parameter : model->parameters()) {
          gradients.push_back(parameter.tensor.grad().to(Device{}).flatten().to_vector<float>());
          parameter.tensor.zero_grad();
        }
        const Tensor packed = concat(rows, 0), logits = (*model)(packed);
        const Tensor loss = cross_entropy(logits, packed.select(1, 0), {.reduction = Reduction::sum});
        EXPECT_NEAR(loss.item(), alone_sum.item(), 1e-6 * alone_sum.item());
        const std::vector<float> all = logits.detach().to(Device{}).flatten().to_vector<float>();
        size_t at = 0;
        for (const auto& document : alone)
          for (const float logit : document) ASSERT_NEAR(all[at++], logit, 2e-6) << at;
        EXPECT_EQ(at, all.size());
        loss.backward();
        size_t which = 0;
        for (const NamedTensor& parameter : model->parameters()) {
          const std::vector<float> got = parameter.tensor.grad().to(Device{}).flatten().to_vector<float>();
          for (size_t i = 0; i < got.size(); ++i)
            ASSERT_NEAR(got[i], gradients[which][i], 1e-4) << parameter.name << " of about 80 terms";
          ++which;
        }
      }
}

TEST(LanguageModel, SaysWhatIsWrongWithDocuments) {
  Decoder model({.vocabulary = kVocabulary, .positions = 8, .width = 8, .depth = 2, .heads = 2});
  const auto error = [&](const Ids& starts) {
    Ids ids(4, 0);
    ids.insert(ids.end(), starts.begin(), starts.end());
    return error_text([&] { model(Tensor::from(ids, {1, 2, 4})); });
  };
  EXPECT_THAT(error({0, 0, 1, 1}), HasSubstr("Documents: expected the start 2 or 0 of token 2 in row 0, got 1"));
  EXPECT_THAT(error({1, 1, 1, 1}), HasSubstr("Documents: expected the start 0 of token 0 in row 0, got 1"));
  EXPECT_THAT(error_text([&] {
                model(Tensor::zeros({1, 3, 4}, DType::i64));
              }),
              HasSubstr("expected ids [N, tokens], or with the starts of documents i64 [N, 2, tokens]"));
}

TEST(LanguageModel, StretchesKnowTheDocuments) {
  const Tensor ids = Tensor::from(some_text(10, 3), {1, 10});
  const Tensor starts = Tensor::from(Ids{0, 0, 0, 0, 4, 4, 6, 6, 6, 6}, {1, 10}), sample = stack({ids, starts}, 1);
  for (const auto& model : some_models({})) {
    const Tensor x = model->run({0, 1}, sample, sample), y = model->run({1, 2}, x, sample);
    EXPECT_EQ(y.to_vector<float>(), (*model)(sample).to_vector<float>());
    EXPECT_NE(y.to_vector<float>(), (*model)(ids).to_vector<float>());
  }
}

// Prompts of other lengths, one of which ends early, and texts that outgrow the positions.
TEST(LanguageModel, PromptsTogetherAreAsAlone) {
  for (const DeviceKind kind : tests::test_devices())
    for (const auto& model : some_models(Device{kind})) {
      model->eval();
      const std::vector<Ids> prompts{some_text(9, 1), some_text(2, 4), some_text(17, 6), some_text(50, 2),
                                     some_text(2, 9)};
      for (const double temperature : {0.0, 1.5}) {
        GenerateOptions options{.tokens = 45, .temperature = temperature, .top_k = 6};
        std::vector<Ids> alone;
        for (const Ids& prompt : prompts) {
          manual_seed(3);
          alone.push_back(generate(*model, prompt, options));
        }
        manual_seed(3);
        EXPECT_EQ(generate_batch(*model, prompts, options), alone);
        // Row 2 ends by the callback, others where a token occurs.
        options.end = {alone[0][20]};
        std::vector<Ids> wanted = alone;
        for (Ids& text : wanted)
          text.resize(static_cast<size_t>(std::find(text.begin(), text.end(), options.end[0]) - text.begin()));
        if (wanted[2].size() > 4) wanted[2].resize(4);
        manual_seed(3);
        std::vector<size_t> counts(prompts.size());
        EXPECT_EQ(generate_batch(*model, prompts, options,
                                 [&](size_t row, int64_t token) {
                                   EXPECT_EQ(token, alone[row][counts[row]]);
                                   return ++counts[row] < 4 || row != 2;
                                 }),
                  wanted);
      }
    }
}

// Several tokens after earlier ones, also with padding and gradients.
TEST(LanguageModel, PartsOfATextAreAsTheWhole) {
  for (const DeviceKind kind : tests::test_devices())
    for (const auto& model : some_models(Device{kind}))
      for (const std::vector<int64_t>& padding : {std::vector<int64_t>{}, std::vector<int64_t>{0, 4}})
        for (const bool trains : {false, true}) {
          model->eval();
          std::optional<NoGrad> no_grad;
          if (!trains) no_grad.emplace();
          Ids both = some_text(25, 1);
          const Ids other = some_text(25, 4);
          both.insert(both.end(), other.begin(), other.end());
          const Tensor ids = Tensor::from(both, {2, 25}, Device{kind});
          std::vector<KeysAndValues> whole_past, past;
          const Tensor whole = model->extend(ids, whole_past, padding);
          if (padding.empty()) {
            EXPECT_LT(max(abs(whole - (*model)(ids))).item(), 1e-5);
          }
          std::vector<Tensor> parts;
          for (int64_t at = 0; const int64_t count : {5, 2, 1, 9, 8}) {
            parts.push_back(model->extend(ids.slice(1, at, count), past, padding));
            at += count;
          }
          const Tensor apart = concat(parts, 1) - whole;
          EXPECT_LT(max(abs(apart)).item(), 1e-5) << model->kind();
        }
}

TEST(LanguageModel, SaysWhatIsWrongWithPrompts) {
  Gpt model({.vocabulary = kVocabulary, .positions = 8, .width = 8, .depth = 1, .heads = 1});
  EXPECT_EQ(error_text([&] { generate_batch(model, {}); }), "generate: expected at least one prompt, got none");
  EXPECT_EQ(error_text([&] {
              generate_batch(model, {{1}, {}});
            }),
            "generate: expected a prompt of at least one token, got none");
  std::vector<KeysAndValues> past;
  const Tensor ids = Tensor::zeros({2, 3}, DType::i64);
  EXPECT_THAT(error_text([&] { model.extend(ids, past, {1}); }), HasSubstr("expected the padding of 2 rows"));
  EXPECT_THAT(error_text([&] {
                model.extend(ids, past, {1, 3});
              }),
              HasSubstr("expected padding of 0 to 2 tokens, got 3"));
}

}  // namespace
}  // namespace weft::nn
