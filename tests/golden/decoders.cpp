// SPDX-License-Identifier: Apache-2.0
// What decoders.py computed with Hugging Face's models of each family.
#include "core/ops/layers/losses.h"
#include "nn/models/decoder.h"
#include "tests/golden/digest.h"

namespace weft::golden {
namespace {

struct Family {
  const char* name;
  nn::DecoderOptions options;
};

const std::vector<Family>& families() {
  static const std::vector<Family> all = [] {
    const nn::DecoderOptions common{
        .vocabulary = 61, .positions = 64, .width = 48, .depth = 2, .heads = 6, .groups = 2, .hidden = 80, .eps = 1e-5};
    std::vector<Family> result;
    const auto add = [&](const char* name, auto change) {
      nn::DecoderOptions options = common;
      change(options);
      result.push_back({name, options});
    };
    add("llama3",
        [](nn::DecoderOptions& o) { o.rotary = {.scaling = nn::RotaryScaling::llama3, .factor = 8, .original = 16}; });
    add("smollm", [](nn::DecoderOptions& o) {
      o.rotary = {.scaling = nn::RotaryScaling::linear, .factor = 2};
      o.tied = true;
    });
    add("mistral", [](nn::DecoderOptions& o) { o.rotary.theta = 1e6, o.head_size = 10, o.window = 5; });
    add("qwen2", [](nn::DecoderOptions& o) {
      o.rotary = {.scaling = nn::RotaryScaling::yarn, .factor = 4, .original = 16};
      o.eps = 1e-6, o.qkv_bias = o.tied = true, o.window = 7, o.window_from = 1;
    });
    add("qwen3",
        [](nn::DecoderOptions& o) { o.rotary.theta = 1e6, o.head_size = 16, o.eps = 1e-6, o.qk_norm = o.tied = true; });
    return result;
  }();
  return all;
}

Tensor ids_from(int64_t first) {
  std::vector<int64_t> ids;
  for (int64_t n = 0; n < 3; ++n)
    for (int64_t i = first; i < first + 21; ++i) ids.push_back((i * 37 + n * 71) % 61);
  return Tensor::from(ids, {3, 21});
}

class Decoders : public testing::TestWithParam<DType> {};

// The angles are f32 there in f64 models, too: about 1e-6 of a turn.
TEST_P(Decoders, EqualThoseOfTransformers) {
  constexpr double kOfAngles = 1e-5;
  const File expected("decoders");
  for (const auto& [family, options] : families()) {
    SCOPED_TRACE(family);
    const std::string name = std::string(family) + '.';
    nn::Decoder model(options);
    fill_parameters(model);
    model.to(GetParam());
    const Tensor x = ids_from(0), logits = model(x), loss = cross_entropy(logits, ids_from(1));
    loss.backward();
    expect_close(logits.slice(1, 0, 5, 5), expected[name + "logits"], "logits", kOfAngles);
    EXPECT_NEAR(loss.item(), expected[name + "loss"].item(), 1e-5);
    uint32_t seed = 0;
    for (const auto& [key, parameter] : model.parameters()) {
      const std::vector<double> mine = digest(parameter.grad(), seed++);
      expect_close(mine, expected[name + "gradient_digest." + key].to_vector<double>(), key, kTolerance);
    }
    EXPECT_EQ(seed, std::ranges::count_if(
                        expected.tensors(),
                        [&](const auto& entry) { return entry.first.starts_with(name + "gradient_digest."); }))
        << "the model lacks a parameter";

    // Token by token, with keys and values kept, the same logits.
    model.eval();
    const NoGrad no_grad;
    std::vector<nn::KeysAndValues> past;
    model.extend(x.slice(1, 0, 10), past);
    for (int64_t i = 10; i < 21; ++i) {
      const Tensor next = model.extend(x.slice(1, i, 1), past);
      if (i % 5 == 0) expect_close(next.select(1, 0), expected[name + "logits"].select(1, i / 5), "kept", kOfAngles);
    }
    const std::vector<int64_t> prompt = x.select(0, 0).slice(0, 0, 9).contiguous().to_vector<int64_t>();
    EXPECT_EQ(nn::generate(model, prompt, {.tokens = 12, .temperature = 0}),
              expected[name + "tokens"].to_vector<int64_t>());
  }
}

INSTANTIATE_TEST_SUITE_P(Precisions, Decoders, testing::Values(DType::f32, DType::f64),
                         [](const auto& test) { return std::string(test.param == DType::f64 ? "f64" : "f32"); });

}  // namespace
}  // namespace weft::golden
