// SPDX-License-Identifier: Apache-2.0
#include "train/decoder_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/autograd.h"
#include "core/ops/layers/losses.h"
#include "data/text/byte_pair.h"
#include "io/weights/safetensors_shards.h"
#include "tests/train/temporary_folder.h"
#include "train/load_weights.h"

namespace weft::train {
namespace {

using nn::RotaryScaling;
using test::error_of;
using test::read_file;
using test::TemporaryFolder;
using test::write_file;
using testing::HasSubstr;

nlohmann::json small_config() {
  return {{"model_type", "llama"},    {"vocab_size", 11},       {"max_position_embeddings", 32},
          {"hidden_size", 16},        {"num_hidden_layers", 2}, {"num_attention_heads", 4},
          {"num_key_value_heads", 2}, {"intermediate_size", 24}};
}

nn::DecoderOptions read_back(const std::string& text) {
  const TemporaryFolder folder;
  write_file(folder / "config.json", text);
  return read_decoder_config(folder / "");
}

// decoder_folder.py says where the folder is from.
#if WEFT_HAVE_UTF8PROC
TEST(DecoderConfig, AFolderOfTransformersGivesItsLossAndItsTokens) {
  const std::filesystem::path folder = std::filesystem::path(WEFT_GOLDEN) / "decoder_folder";
  const auto expected = nlohmann::json::parse(read_file(folder / "expected.json"));
  const auto tokens = data::BytePair::from_folder(folder);
  nn::Decoder model(read_decoder_config(folder));
  EXPECT_TRUE(load_weights(model, folder).is_whole());
  model.eval();
  const std::vector<int64_t> ids = tokens.encode(expected["text"].get<std::string>());
  const auto count = static_cast<int64_t>(ids.size());
  const Tensor x = Tensor::from(ids, {1, count});
  EXPECT_NEAR(cross_entropy(model(x.slice(1, 0, count - 1)), x.slice(1, 1, count - 1).contiguous()).item(),
              expected["loss"].get<double>(), 1e-4);  // 10 times 1e-5: the loss is 10
  const nn::GenerateOptions likeliest{.tokens = 20, .temperature = 0, .below = tokens.size()};
  const auto prompt = tokens.encode(expected["prompt"].get<std::string>());
  const auto want = expected["ids"].get<std::vector<int64_t>>();
  EXPECT_EQ(nn::generate(model, prompt, likeliest), want);

  // And back: the same names, whole and in several files.
  for (const uint64_t largest : {uint64_t{20'000}, UINT64_MAX}) {
    const TemporaryFolder saved;
    const auto files = write_safetensors_shards(saved / "model.safetensors", model.state_dict(), largest);
    EXPECT_EQ(files.size() > 1, largest == 20'000);
    write_file(saved / "config.json", decoder_config(model.options));
    nn::Decoder again(read_decoder_config(saved / ""));
    EXPECT_TRUE(load_weights(again, saved / "").is_whole());
    EXPECT_EQ(nn::generate(again, prompt, likeliest), want);
  }
}
#endif

TEST(DecoderConfig, EachFamilyComesBack) {
  const auto expect = [](const char* type, nn::DecoderOptions o) {
    o.groups = o.kv_heads(), o.head_size = o.size_of_head(), o.hidden = o.size_of_hidden();
    const std::string text = decoder_config(o);
    EXPECT_EQ(nlohmann::json::parse(text)["model_type"], type);
    EXPECT_EQ(decoder_config(read_back(text)), text);
  };
  for (const std::string& name : nn::decoder_names())
    expect(name.starts_with("qwen3")     ? "qwen3"
           : name.starts_with("qwen2")   ? "qwen2"
           : name.starts_with("mistral") ? "mistral"
                                         : "llama",
           nn::decoder_options(name));
  expect("llama", {.rotary = {.scaling = RotaryScaling::linear, .factor = 2}});
  expect("qwen2", {.rotary = {.scaling = RotaryScaling::yarn, .factor = 4, .original = 64, .slow = 2, .fast = 30},
                   .qkv_bias = true,
                   .window = 7,
                   .window_from = 3});
  expect("qwen3", {.rotary = {.scaling = RotaryScaling::yarn, .factor = 4, .whole = false, .attention_factor = 1.5},
                   .qk_norm = true,
                   .window = 7});
}

// Files leave entries out, and transformers 4 and 5 write some in two ways.
TEST(DecoderConfig, FillsInWhatTheFamilyMeans) {
  const auto with = [](const nlohmann::json& more) {
    nlohmann::json config = small_config();
    config.update(more);
    return read_back(config.dump());
  };
  EXPECT_EQ(with(nlohmann::json::object()).window, 0);
  EXPECT_EQ(with(nlohmann::json::object()).rotary.theta, 10000);
  EXPECT_EQ(with({{"num_key_value_heads", nullptr}}).groups, 4);
  EXPECT_EQ(with({{"model_type", "mistral"}}).window, 4096);
  EXPECT_EQ(with({{"model_type", "mistral"}, {"sliding_window", nullptr}}).window, 0);
  EXPECT_EQ(with({{"model_type", "qwen3"}}).head_size, 128);
  const nlohmann::json slides{{"model_type", "qwen2"}, {"use_sliding_window", true}, {"sliding_window", 5}};
  EXPECT_EQ(with(slides).window_from, 28);
  nlohmann::json listed = slides;
  listed["layer_types"] = {"full_attention", "sliding_attention"};
  EXPECT_EQ(with(listed).window_from, 1);
  EXPECT_EQ(with({{"model_type", "qwen2"}, {"sliding_window", 5}}).window, 0);
  const nn::RotaryPositions five =
      with({{"rope_parameters", {{"rope_theta", 5e5}, {"rope_type", "llama3"}, {"factor", 8.0}}}}).rotary;
  EXPECT_EQ(five.theta, 5e5);
  EXPECT_EQ(five.scaling, RotaryScaling::llama3);
  EXPECT_EQ(five.original, 32);
  EXPECT_EQ(with({{"rope_theta", 7e4}, {"rope_scaling", {{"type", "linear"}, {"factor", 3.0}}}}).rotary.factor, 3);
}

TEST(DecoderConfig, SaysWhatIsWrong) {
  const auto error = [](const char* key, const nlohmann::json& value) {
    nlohmann::json config = small_config();
    config[key] = value;
    return error_of([&] { read_back(config.dump()); });
  };
  EXPECT_THAT(error("model_type", "gemma"),
              HasSubstr("config.json: expected model_type llama, mistral, qwen2 or qwen3, got 'gemma'"));
  EXPECT_THAT(error("attention_bias", true), HasSubstr("expected attention_bias false, got true"));
  EXPECT_THAT(error("hidden_act", "gelu"), HasSubstr("expected hidden_act \"silu\", got \"gelu\""));
  EXPECT_THAT(error("hidden_size", 0), HasSubstr("expected hidden_size of 1 to 16777216, got 0"));
  EXPECT_THAT(error("vocab_size", nullptr), HasSubstr("expected vocab_size of 1 to 16777216, got none"));
  EXPECT_THAT(error("rms_norm_eps", "x"), HasSubstr("expected the configuration of a decoder of Hugging Face's, got"));
  EXPECT_THAT(error("rope_scaling", {{"rope_type", "dynamic"}, {"factor", 2.0}}),
              HasSubstr("rope_scaling: expected rope_type default, linear, llama3 or yarn, got 'dynamic'"));
  EXPECT_THAT(error("rope_scaling", {{"rope_type", "linear"}}), HasSubstr("rope_scaling: expected a factor, got none"));
  nlohmann::json mixed = small_config();
  mixed.update({{"model_type", "qwen2"},
                {"use_sliding_window", true},
                {"layer_types", {"sliding_attention", "full_attention"}}});
  EXPECT_THAT(
      error_of([&] { read_back(mixed.dump()); }),
      HasSubstr("expected 2 layer_types, full_attention and then sliding_attention, got [\"sliding_attention\""));
  EXPECT_THAT(error_of([] { read_back("[]"); }), HasSubstr("expected an object, got array"));
  EXPECT_THAT(error_of([] { decoder_config({.qkv_bias = true, .qk_norm = true}); }),
              HasSubstr("decoder_config: no published family has"));
}

}  // namespace
}  // namespace weft::train
