// SPDX-License-Identifier: Apache-2.0
#include "nn/models/gpt.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/layers/losses.h"
#include "core/ops/random.h"
#include "core/ops/reduce.h"
#include "core/random.h"
#include "tests/nn/leaves.h"
#include "tests/support/devices.h"
#include "tests/support/error_text.h"

namespace weft::nn {
namespace {

using testing::HasSubstr;

constexpr GptOptions kSmall{.vocabulary = 13, .positions = 8, .width = 16, .depth = 2, .heads = 2};

Tensor ids_of(int64_t count, int64_t tokens) {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < count * tokens; ++i) ids.push_back(i * 5 % 13);
  return Tensor::from(ids, {count, tokens});
}

// Hugging Face's count of GPT2LMHeadModel, whose output layer is the token embedding.
TEST(Gpt, HasGpt2sSizes) {
  const SkipInit sizes_alone;
  Gpt model(gpt_options("gpt2"));
  EXPECT_EQ(parameter_count(model), 124'439'808);
  EXPECT_EQ(model.state_dict().tensors.size(), 148u);
  Gpt medium(gpt_options("gpt2_medium"));
  EXPECT_EQ(parameter_count(medium), 354'823'168);
}

TEST(Gpt, EveryMemberIsNamedAndTakesPart) {
  Gpt model(kSmall);
  EXPECT_EQ(forgotten_members(model, ids_of(2, 8)), 0u);
  EXPECT_EQ(idle_members(model, ids_of(2, 8)), 0u);
}

TEST(Gpt, ATokenSeesNoLaterOne) {
  manual_seed(1);
  const Gpt model(kSmall);
  const NoGrad no_grad;
  const Tensor one = Tensor::from(std::vector<int64_t>{3, 1, 4, 1, 5}, {1, 5});
  const Tensor other = Tensor::from(std::vector<int64_t>{3, 1, 4, 9, 2}, {1, 5});
  const Tensor a = model(one), b = model(other);
  EXPECT_EQ(a.slice(1, 0, 3).contiguous().to_vector<float>(), b.slice(1, 0, 3).contiguous().to_vector<float>());
  EXPECT_NE(a.select(1, 3).contiguous().to_vector<float>(), b.select(1, 3).contiguous().to_vector<float>());
}

// Tokens that no input has get a gradient from the output layer.
TEST(Gpt, TheEmbeddingIsTheOutputLayer) {
  manual_seed(2);
  Gpt model(kSmall);
  const Tensor ids = Tensor::from(std::vector<int64_t>{1, 2, 1, 2}, {1, 4});
  cross_entropy(model(ids), ids).backward();
  const Tensor gradient = model.wte->weight.grad();
  for (int64_t row = 0; row < 13; ++row)
    EXPECT_GT(sum(gradient.select(0, row) * gradient.select(0, row)).item(), 0) << row;
}

/// The loss and then all gradients, which the model loses.
std::vector<float> loss_and_gradients(Gpt& model, const Tensor& loss) {
  loss.backward();
  std::vector<float> all{static_cast<float>(loss.item())};
  for (const NamedTensor& parameter : model.parameters()) {
    for (const float value : parameter.tensor.grad().to(Device{}).to_vector<float>()) all.push_back(value);
    parameter.tensor.set_grad({});
  }
  return all;
}

TEST(Gpt, TheLossWithoutTheLogits) {
  manual_seed(2);
  Gpt model(kSmall);
  const Tensor ids = Tensor::from(std::vector<int64_t>{1, 2, 1, 2, 5, 0}, {2, 3});
  const auto want = loss_and_gradients(model, cross_entropy(model(ids), ids)),
             got = loss_and_gradients(model, model.loss(ids, ids, {.rows = 4}));
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-5) << i;
}

// LayerNorm::feeds_product saves passes over memory and changes no bit.
TEST(Gpt, NormsGiveProductsTheirDtype) {
  for (const DeviceKind kind : tests::test_devices()) {
    const Device device{kind, 0};
    manual_seed(2);
    Gpt model(kSmall);
    model.to(device);
    const Tensor ids = ids_of(3, 8).to(device);
    std::vector<DType> dtypes;
    for (const auto& block : model.h) {
      const auto note = [&](const Module&, const Tensor&, const Tensor& y) {
        dtypes.push_back(y.dtype());
        return Tensor();
      };
      dynamic_cast<GptBlock&>(*block).ln_2.register_hooks({}, note);
    }
    const Autocast low(DType::bf16);
    const auto got = loss_and_gradients(model, cross_entropy(model(ids), ids));
    for (const auto& block : model.h) {
      auto& whole = dynamic_cast<GptBlock&>(*block);
      whole.ln_1.feeds_product = whole.ln_2.feeds_product = false;
    }
    EXPECT_EQ(got, loss_and_gradients(model, cross_entropy(model(ids), ids)));
    EXPECT_EQ(dtypes, (std::vector{DType::bf16, DType::bf16, DType::f32, DType::f32}));
  }
}

TEST(Gpt, SaysWhatIsWrong) {
  const Gpt model(kSmall);
  EXPECT_THAT(error_text([&] { model(ids_of(1, 9)); }), HasSubstr("Gpt: expected at most 8 tokens, got 9"));
  EXPECT_THAT(error_text([&] { model(Tensor::zeros({3}, DType::i64)); }),
              HasSubstr("Gpt: expected ids [N, tokens], got i64[3]"));
  EXPECT_THAT(error_text([] { gpt_options("gpt2_small"); }), HasSubstr("no model is called 'gpt2_small'"));
  EXPECT_THAT(error_text([&] { generate(model, {}); }), HasSubstr("generate: expected a prompt of at least one token"));
  EXPECT_THAT(error_text([&] { generate(model, {1}, {.temperature = -1}); }),
              HasSubstr("generate: expected a temperature of at least 0, got -1"));
  EXPECT_THAT(error_text([&] { generate(model, {1}, {.top_p = 0}); }),
              HasSubstr("generate: expected a top_p in (0, 1], got 0"));
  const Gpt diverged(kSmall);
  {
    const NoGrad no_grad;
    diverged.ln_f.bias.fill_(NAN);
  }
  for (const double temperature : {0.0, 1.0})
    EXPECT_THAT(error_text([&] { generate(diverged, {1}, {.temperature = temperature}); }),
                HasSubstr("generate: the logits are not finite"));
}

std::vector<int64_t> drawn(const Gpt& model, uint64_t seed, const GenerateOptions& options) {
  manual_seed(seed);
  return generate(model, {1, 2}, options);
}

// Against a sort of all tokens.
TEST(Generate, DrawsFromTheSortedTokens) {
  manual_seed(4);
  const Gpt model({.vocabulary = 900, .positions = 8, .width = 16, .depth = 1, .heads = 2});
  const std::vector<float> logits =
      model(Tensor::from<int64_t>({1, 2}, {1, 2})).select(1, 1).detach().to_vector<float>();
  std::vector<int64_t> order(logits.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto logit = [&](int64_t id) { return static_cast<double>(logits[static_cast<size_t>(id)]); };
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return logit(a) > logit(b); });
  std::set<int64_t> places;
  for (uint64_t seed = 0; seed < 60; ++seed)
    for (const int64_t top_k : {0, 1, 70, 300})
      for (const double top_p : {1.0, 0.9, 0.3}) {
        manual_seed(seed);
        const double random = uniform({1}, 0, 1, DType::f64).item();
        std::vector<double> sums;
        const size_t kept = top_k > 0 ? static_cast<size_t>(top_k) : order.size();
        for (size_t i = 0; i < kept; ++i)
          sums.push_back((sums.empty() ? 0 : sums.back()) + std::exp((logit(order[i]) - logit(order[0])) / 0.7));
        size_t last = 0;
        while (sums[last] < top_p * sums.back() && last + 1 < kept) ++last;
        size_t place = 0;
        while (sums[place] <= random * sums[last] && place < last) ++place;
        const GenerateOptions options{.tokens = 1, .temperature = 0.7, .top_k = top_k, .top_p = top_p};
        EXPECT_EQ(drawn(model, seed, options), std::vector<int64_t>{order[place]}) << top_k << " " << top_p;
        places.insert(static_cast<int64_t>(place));
      }
  EXPECT_GT(*places.rbegin(), 500) << "a token far down in the order";
}

TEST(Generate, DrawsTheSameTokensForOneSeed) {
  manual_seed(3);
  Gpt model(kSmall);
  model.eval();
  const GenerateOptions options{.tokens = 40};  // the eight positions are used up several times
  const std::vector<int64_t> first = drawn(model, 7, options);
  EXPECT_EQ(first.size(), 40u);
  EXPECT_EQ(drawn(model, 7, options), first);
  EXPECT_NE(drawn(model, 8, options), first);
  EXPECT_EQ(drawn(model, 7, {.tokens = 40, .temperature = 0}), drawn(model, 8, {.tokens = 40, .top_k = 1}))
      << "the likeliest token, however it is asked for";
}

// The cache of earlier tokens changes nothing: each token follows from the whole text so far.
TEST(Generate, IsTheLikeliestTokenOfTheWholeText) {
  manual_seed(4);
  Gpt model(kSmall);
  model.eval();
  std::vector<int64_t> text{5, 6, 7};
  std::vector<int64_t> told;
  const std::vector<int64_t> got =
      generate(model, text, {.tokens = 5, .temperature = 0}, [&](int64_t token) { told.push_back(token); });
  EXPECT_EQ(told, got);
  const NoGrad no_grad;
  for (const int64_t token : got) {
    const auto count = static_cast<int64_t>(text.size());
    const std::vector<float> logits =
        model(Tensor::from(text, {1, count})).select(1, count - 1).contiguous().to_vector<float>();
    EXPECT_EQ(std::max_element(logits.begin(), logits.end()) - logits.begin(), token);
    text.push_back(token);
  }
}

TEST(Generate, FollowsTheDistribution) {
  Gpt model(kSmall);
  model.eval();
  {
    const NoGrad no_grad;  // a model whose logits are known: only the first row of the embedding counts
    for (const NamedTensor& parameter : model.parameters()) parameter.tensor.zero_();
    model.ln_f.bias.fill_(1);
    for (int64_t row = 0; row < 3; ++row)
      model.wte->weight.select(0, row).fill_(std::log(1.0 + static_cast<double>(row)) / 16);
    for (int64_t row = 3; row < 13; ++row) model.wte->weight.select(0, row).fill_(-1);
  }
  manual_seed(9);
  const auto share = [&](const GenerateOptions& options) {
    std::vector<double> counts(13);
    for (const int64_t token : generate(model, {0}, options)) counts[static_cast<size_t>(token)] += 1.0 / 3000;
    return counts;
  };
  // Weights 1, 2, 3 (and 10 e^-16): three standard deviations of 3000 draws are 0.027.
  const std::vector<double> plain = share({.tokens = 3000});
  EXPECT_NEAR(plain[0], 1.0 / 6, 0.027);
  EXPECT_NEAR(plain[1], 2.0 / 6, 0.027);
  EXPECT_NEAR(plain[2], 3.0 / 6, 0.027);
  const std::vector<double> two = share({.tokens = 3000, .top_k = 2});
  EXPECT_EQ(two[0], 0);
  EXPECT_NEAR(two[1], 2.0 / 5, 0.027);
  // Shares 3/6, 2/6, 1/6: the second reaches 0.6, the first 0.5.
  const std::vector<double> likely = share({.tokens = 3000, .top_p = 0.6});
  EXPECT_EQ(likely[0], 0);
  EXPECT_NEAR(likely[1], 2.0 / 5, 0.027);
  EXPECT_NEAR(share({.tokens = 30, .top_p = 0.45})[2] * 3000, 30, 1e-6);
  const std::vector<double> sharp = share({.tokens = 3000, .temperature = 0.5});  // 1, 4, 9
  EXPECT_NEAR(sharp[2], 9.0 / 14, 0.027);
}

TEST(Generate, DrawsNoPaddingOfTheVocabulary) {
  manual_seed(5);
  Gpt model(kSmall);
  model.eval();
  const std::vector<int64_t> text = generate(model, {1}, {.tokens = 200, .below = 5});
  EXPECT_LT(*std::max_element(text.begin(), text.end()), 5);
}

TEST(Generate, EndsWithTheEndOfText) {
  manual_seed(5);
  Gpt model(kSmall);
  model.eval();
  const std::vector<int64_t> text = generate(model, {1}, {.tokens = 20, .temperature = 0});
  const std::vector<int64_t> ended = generate(model, {1}, {.tokens = 20, .temperature = 0, .end = {text[3]}});
  EXPECT_LE(ended.size(), 3u);
  EXPECT_TRUE(std::equal(ended.begin(), ended.end(), text.begin()));
}

}  // namespace
}  // namespace weft::nn
