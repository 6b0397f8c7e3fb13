// SPDX-License-Identifier: Apache-2.0
#include "train/decoder_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "io/file_reader.h"
#include "io/json.h"

namespace weft::train {
namespace {

using nn::RotaryScaling;

struct Kind {
  const char *type, *architecture;
};
constexpr Kind kKinds[] = {{"llama", "LlamaForCausalLM"},
                           {"mistral", "MistralForCausalLM"},
                           {"qwen2", "Qwen2ForCausalLM"},
                           {"qwen3", "Qwen3ForCausalLM"}};

struct ScalingName {
  const char* name;
  RotaryScaling scaling;
};
constexpr ScalingName kScalings[] = {{"default", RotaryScaling::none},
                                     {"linear", RotaryScaling::linear},
                                     {"llama3", RotaryScaling::llama3},
                                     {"yarn", RotaryScaling::yarn}};

/// An object's entries, as their kinds; one that is null is missing.
struct Entries {
  const nlohmann::json& json;
  std::string path;

  const nlohmann::json* find(const char* key) const {
    const auto found = json.find(key);
    return found == json.end() || found->is_null() ? nullptr : &*found;
  }
  int64_t size(const char* key, int64_t other = 0) const {
    constexpr int64_t kMost = 1 << 24;
    const nlohmann::json* const found = find(key);
    if (found == nullptr && other > 0) return other;
    const int64_t value = found ? json_integer<int64_t>(*found, path + ": " + key) : 0;
    WEFT_CHECK(value >= 1 && value <= kMost, path, ": expected ", key, " of 1 to ", kMost, ", got ",
               found ? str(value) : "none");
    return value;
  }
  double number(const char* key, double other) const {
    const nlohmann::json* const found = find(key);
    return found ? found->get<double>() : other;
  }
  bool flag(const char* key) const {
    const nlohmann::json* const found = find(key);
    return found && found->get<bool>();
  }
  /// A setting that the model has in one form alone.
  void expect(const char* key, const nlohmann::json& wanted) const {
    const nlohmann::json* const found = find(key);
    WEFT_CHECK(!found || *found == wanted, path, ": expected ", key, " ", wanted.dump(), ", got ",
               printable(found ? found->dump() : ""));
  }
};

/// `rope_theta` and `rope_scaling`, or both in `rope_parameters` (transformers 5).
nn::RotaryPositions rotary_of(const Entries& config) {
  const nlohmann::json* const both = config.find("rope_parameters");
  const nlohmann::json* const scaling = both ? both : config.find("rope_scaling");
  const nlohmann::json none = nlohmann::json::object();
  const Entries rope{scaling ? *scaling : none, config.path + ": " + (both ? "rope_parameters" : "rope_scaling")};
  nn::RotaryPositions result;
  result.theta = both && rope.find("rope_theta") ? rope.number("rope_theta", 0) : config.number("rope_theta", 1e4);
  const nlohmann::json* const kind = rope.find("rope_type") ? rope.find("rope_type") : rope.find("type");
  const std::string name = kind ? kind->get<std::string>() : "default";
  const auto* const known =
      std::find_if(std::begin(kScalings), std::end(kScalings), [&](const auto& one) { return name == one.name; });
  WEFT_CHECK(known != std::end(kScalings), rope.path, ": expected rope_type default, linear, llama3 or yarn, got '",
             printable(name), "'");
  result.scaling = known->scaling;
  rope.expect("partial_rotary_factor", 1.0);
  rope.expect("mscale", nullptr);
  if (result.scaling == RotaryScaling::none) return result;
  WEFT_CHECK(rope.find("factor"), rope.path, ": expected a factor, got none");
  result.factor = rope.number("factor", 1);
  if (result.scaling != RotaryScaling::linear)
    result.original = rope.size("original_max_position_embeddings", config.size("max_position_embeddings", 2048));
  result.low = rope.number("low_freq_factor", result.low);
  result.high = rope.number("high_freq_factor", result.high);
  result.slow = rope.number("beta_slow", result.slow);
  result.fast = rope.number("beta_fast", result.fast);
  result.attention_factor = rope.number("attention_factor", 0);
  if (rope.find("truncate")) result.whole = rope.flag("truncate");
  return result;
}

/// The first layer of a Qwen that has a window.
int64_t window_from(const Entries& config, int64_t depth) {
  const nlohmann::json* const types = config.find("layer_types");
  if (types == nullptr) {
    const nlohmann::json* const first = config.find("max_window_layers");
    return first ? json_integer<int64_t>(*first, config.path + ": max_window_layers") : 28;
  }
  const auto kinds = types->get<std::vector<std::string>>();
  const auto first = std::find(kinds.begin(), kinds.end(), "sliding_attention");
  WEFT_CHECK(static_cast<int64_t>(kinds.size()) == depth &&
                 std::count(kinds.begin(), first, "full_attention") == first - kinds.begin() &&
                 std::all_of(first, kinds.end(), [](const auto& kind) { return kind == "sliding_attention"; }),
             config.path, ": expected ", depth, " layer_types, full_attention and then sliding_attention, got ",
             printable(types->dump()));
  return first - kinds.begin();
}

nn::DecoderOptions options_of(const Entries& config) {
  const nlohmann::json* const type = config.find("model_type");
  const std::string name = type ? type->get<std::string>() : "";
  WEFT_CHECK(is_decoder(name), config.path, ": expected model_type llama, mistral, qwen2 or qwen3, got '",
             printable(name), "'");
  for (const char* key : {"attention_bias", "mlp_bias"}) config.expect(key, false);
  config.expect("hidden_act", "silu");
  nn::DecoderOptions o{.vocabulary = config.size("vocab_size"),
                       .positions = config.size("max_position_embeddings", 2048),
                       .width = config.size("hidden_size"),
                       .depth = config.size("num_hidden_layers"),
                       .heads = config.size("num_attention_heads"),
                       .hidden = config.size("intermediate_size"),
                       .rotary = rotary_of(config),
                       .eps = config.number("rms_norm_eps", 1e-6),
                       .qkv_bias = name == "qwen2",
                       .qk_norm = name == "qwen3",
                       .tied = config.flag("tie_word_embeddings")};
  o.groups = config.size("num_key_value_heads", o.heads);
  if (name == "qwen3" || config.find("head_dim")) o.head_size = config.size("head_dim", 128);
  const bool slides = name == "mistral" || (name.starts_with("qwen") && config.flag("use_sliding_window"));
  if (slides && (config.find("sliding_window") || !config.json.contains("sliding_window"))) {  // null: none
    o.window = config.size("sliding_window", 4096);
    if (name != "mistral") o.window_from = window_from(config, o.depth);
  }
  return o;
}

}  // namespace

bool is_decoder(const std::string& model_type) {
  return std::any_of(std::begin(kKinds), std::end(kKinds), [&](const Kind& kind) { return model_type == kind.type; });
}

nn::DecoderOptions read_decoder_config(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "config.json";
  const std::string text = read_text(path, "model"), name = "model: " + path.string();
  check_nesting(text, name);
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    WEFT_CHECK(json.is_object(), name, ": expected an object, got ", json.type_name());
    return options_of({json, name});
  } catch (const nlohmann::json::exception& error) {
    fail(name, ": expected the configuration of a decoder of Hugging Face's, got '", printable(error.what()), "'");
  }
}

std::string decoder_config(const nn::DecoderOptions& o) {
  const Kind& kind = kKinds[o.qk_norm ? 3 : o.qkv_bias ? 2 : o.window > 0 ? 1 : 0];
  const bool mistral = &kind == &kKinds[1];
  WEFT_CHECK(!(o.qk_norm && o.qkv_bias) && !(mistral && o.window_from > 0),
             "decoder_config: no published family has norms and biases of queries and keys, nor windows of later "
             "layers alone without either");
  nlohmann::ordered_json json{{"architectures", {kind.architecture}},
                              {"model_type", kind.type},
                              {"vocab_size", o.vocabulary},
                              {"max_position_embeddings", o.positions},
                              {"hidden_size", o.width},
                              {"num_hidden_layers", o.depth},
                              {"num_attention_heads", o.heads},
                              {"num_key_value_heads", o.kv_heads()},
                              {"head_dim", o.size_of_head()},
                              {"intermediate_size", o.size_of_hidden()},
                              {"hidden_act", "silu"},
                              {"rms_norm_eps", o.eps},
                              {"tie_word_embeddings", o.tied},
                              {"rope_theta", o.rotary.theta},
                              {"rope_scaling", nullptr}};
  const nn::RotaryPositions& rotary = o.rotary;
  if (rotary.scaling != RotaryScaling::none) {
    nlohmann::ordered_json& scaling = json["rope_scaling"];
    for (const ScalingName& one : kScalings)
      if (one.scaling == rotary.scaling) scaling["rope_type"] = one.name;
    scaling["factor"] = rotary.factor;
    if (rotary.scaling != RotaryScaling::linear) scaling["original_max_position_embeddings"] = rotary.original;
    if (rotary.scaling == RotaryScaling::llama3) {
      scaling["low_freq_factor"] = rotary.low;
      scaling["high_freq_factor"] = rotary.high;
    }
    if (rotary.scaling == RotaryScaling::yarn) {
      scaling["beta_slow"] = rotary.slow;
      scaling["beta_fast"] = rotary.fast;
      scaling["truncate"] = rotary.whole;
      if (rotary.attention_factor > 0) scaling["attention_factor"] = rotary.attention_factor;
    }
  }
  if (mistral) json["sliding_window"] = o.window;
  if (!mistral && o.window > 0) {
    json["use_sliding_window"] = true;
    json["sliding_window"] = o.window;
    json["max_window_layers"] = o.window_from;
  }
  return json.dump(2) + '\n';
}

}  // namespace weft::train
