// SPDX-License-Identifier: Apache-2.0
#include "apps/gpt/gpt_files.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/autograd.h"
#include "io/atomic_file.h"
#include "io/file_reader.h"
#include "io/json.h"
#include "io/safetensors.h"
#include "io/weights/safetensors_shards.h"
#include "train/decoder_config.h"
#include "train/exit.h"
#include "train/load_weights.h"

namespace weft::gpt {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int64_t kRowsAtOnce = 1024;  // rows of a table in memory

bool is_nanogpt(const fs::path& path) { return fs::is_regular_file(path); }

/// A file may hold the output layer beside the embedding whose weight it shares.
/// Rank 0 alone compares the two where ranks read the weights later, in parts.
void require_tied(const std::shared_ptr<const WeightsFile>& file) {
  const auto named = [&](std::string_view name) {
    return std::find_if(file->tensors().begin(), file->tensors().end(),
                        [&](const WeightInfo& info) { return info.name.ends_with(name); });
  };
  const auto head = named("lm_head.weight");
  auto tokens = named("wte.weight");
  if (tokens == file->tensors().end()) tokens = named("embed_tokens.weight");
  if (head == file->tensors().end() || tokens == file->tensors().end()) return;
  const auto compare = [=] {
    bool is_tied = head->sizes == tokens->sizes;
    const int64_t all = is_tied && head->sizes.rank() > 0 ? head->sizes[0] : 0;
    const auto values = [&](auto found, int64_t row) {
      const auto index = static_cast<size_t>(found - file->tensors().begin());
      const WeightBlock block{.row = row, .rows = std::min(kRowsAtOnce, all - row)};
      return file->read_block(index, block).to(DType::f32).template to_vector<float>();
    };
    for (int64_t row = 0; row < all && is_tied; row += kRowsAtOnce) is_tied = values(head, row) == values(tokens, row);
    WEFT_CHECK(is_tied, "lm_head.weight differs from ", tokens->name,
               ": the model's output layer is the token embedding");
  };
  nn::DeferredInit* const later = nn::DeferredInit::current();
  later ? later->add_source(str(head->name, " is ", tokens->name), compare) : compare();
}

std::vector<NamedTensor> biases_of(nn::LanguageModel& model) {
  std::vector<NamedTensor> biases = model.parameters();
  std::erase_if(biases, [](const NamedTensor& entry) { return !entry.name.ends_with(".bias"); });
  return biases;
}

/// How Hugging Face calls gelu's two forms.
std::optional<Gelu> gelu_named(const std::string& name) {
  if (name == "gelu_new" || name == "gelu_pytorch_tanh" || name == "gelu_fast") return Gelu::tanh;
  return name == "gelu" ? std::optional(Gelu::erf) : std::nullopt;
}

/// An id, a list of them, or null.
std::vector<int64_t> ids_of(const nlohmann::json& value, const std::string& what) {
  std::vector<int64_t> ids;
  if (value.is_null()) return ids;
  for (const auto& id : value.is_array() ? value : nlohmann::json::array({value}))
    ids.push_back(json_integer<int64_t>(id, what));
  return ids;
}

int64_t checked_size(int64_t value, const fs::path& path, const std::string& key) {
  constexpr int64_t kMost = 1 << 20;
  WEFT_CHECK(value >= 1 && value <= kMost, "model: ", path.string(), ": expected ", key, " of 1 to ", kMost, ", got ",
             value);
  return value;
}

/// `model_args` of nanoGPT's train.py.
GptConfig read_nanogpt(const fs::path& path) {
  std::map<std::string, std::string> args;
  try {
    args = open_weights(path, {.key = "model_args"})->metadata();
  } catch (const Error& error) {
    fail("model: expected a folder with config.json, or nanoGPT's checkpoint, got the file ", path.string(), ": ",
         error.what());
  }
  const auto size = [&](const char* key) {
    const auto found = args.find(key);
    const std::string text = found == args.end() ? "none" : found->second;
    const char* const end = text.data() + text.size();
    int64_t value = 0;
    const auto [rest, wrong] = std::from_chars(text.data(), end, value);
    WEFT_CHECK(wrong == std::errc() && rest == end, "model: ", path.string(), ": expected model_args.", key,
               " as a whole number, got ", printable(text));
    return checked_size(value, path, str("model_args.", key));
  };
  return {.sizes = {.vocabulary = size("vocab_size"),
                    .positions = size("block_size"),
                    .width = size("n_embd"),
                    .depth = size("n_layer"),
                    .heads = size("n_head"),
                    .gelu = Gelu::erf}};  // nn.GELU()
}

/// The entries of a GPT-2.
void read_gpt2(const nlohmann::json& json, const fs::path& path, GptConfig& config) {
  const auto size = [&](const char* key) {
    return checked_size(json_integer<int64_t>(json.at(key), str("model: ", path.string(), ": ", key)), path, key);
  };
  const auto expect = [&](const char* key, const nlohmann::json& wanted) {
    const auto found = json.find(key);
    const nlohmann::json got = found == json.end() ? wanted : *found;
    WEFT_CHECK(got == wanted, "model: ", path.string(), ": expected ", key, " ", wanted.dump(), ", got ",
               printable(got.dump()));
  };
  expect("model_type", "gpt2");
  expect("tie_word_embeddings", true);
  expect("scale_attn_weights", true);
  expect("scale_attn_by_inverse_layer_idx", false);
  expect("add_cross_attention", false);
  const auto gelu = gelu_named(json.value("activation_function", "gelu_new"));
  WEFT_CHECK(gelu, "model: ", path.string(), ": expected activation_function gelu_new or gelu, got ",
             printable(json["activation_function"].dump()));
  config.sizes = {.vocabulary = size("vocab_size"),
                  .positions = size("n_positions"),
                  .width = size("n_embd"),
                  .depth = size("n_layer"),
                  .heads = size("n_head"),
                  .eps = json.value("layer_norm_epsilon", 1e-5),
                  .gelu = *gelu};
  if (json.contains("n_inner") && !json["n_inner"].is_null()) config.sizes.hidden = size("n_inner");
  for (const char* key : {"embd_pdrop", "attn_pdrop", "resid_pdrop"})
    config.dropout = std::max(config.dropout, json.value(key, 0.0));
}

}  // namespace

fs::path model_folder(const fs::path& path) {
  return fs::exists(path / "model" / "config.json") ? path / "model" : path;
}

GptConfig read_gpt_config(const fs::path& folder) {
  if (is_nanogpt(folder)) return read_nanogpt(folder);
  const fs::path path = folder / "config.json";
  const std::string text = read_text(path, "model");
  check_nesting(text, "model: " + path.string());
  GptConfig config;
  try {
    const auto json = nlohmann::json::parse(text);  // in any order: an ordered object searches names linearly
    if (json.contains("model_type") && json["model_type"].is_string() && train::is_decoder(json["model_type"])) {
      config.decoder = train::read_decoder_config(folder);
      config.decoder_text = text;
      config.dropout = json.value("attention_dropout", 0.0);
    } else {
      read_gpt2(json, path, config);
    }
    if (fs::exists(folder / "generation_config.json")) {
      config.generation = read_text(folder / "generation_config.json", "model");
      check_nesting(config.generation, "model: " + (folder / "generation_config.json").string());
    }
    const auto generation = config.generation.empty() ? nlohmann::json() : nlohmann::json::parse(config.generation);
    for (const auto& from : {json, generation}) {  // the second has the last word
      if (from.contains("eos_token_id")) config.end = ids_of(from["eos_token_id"], path.string() + ": eos_token_id");
      if (from.contains("bos_token_id") && !from["bos_token_id"].is_null())
        config.begin = json_integer<int64_t>(from["bos_token_id"], path.string() + ": bos_token_id");
    }
    return config;
  } catch (const nlohmann::json::exception& error) {
    fail("model: ", path.string(), ": expected the configuration of Hugging Face's GPT-2, got '",
         printable(error.what()), "'");
  }
}

data::BytePair read_tokenizer(const std::string& flag, const fs::path& weights) {
  if (flag != "auto") return data::BytePair::from_folder(model_folder(flag));
  WEFT_CHECK(!is_nanogpt(weights), "--tokenizer: expected the folder of a tokenizer, got none: the checkpoint ",
             weights.string(), " holds weights alone");
  return data::BytePair::from_folder(weights);
}

void require_room(const data::BytePair& tokens, const GptConfig& config) {
  const int64_t most = config.with_sizes([](const auto& sizes) { return sizes.vocabulary; });
  WEFT_CHECK(tokens.size() <= most, "--tokenizer: expected at most the ", most, " tokens of the weights, got ",
             tokens.size());
}

GptConfig named_config(const std::string& model) {
  const std::vector<std::string> gpts = nn::gpt_names(), decoders = nn::decoder_names();
  if (std::find(gpts.begin(), gpts.end(), model) != gpts.end()) return {.sizes = nn::gpt_options(model)};
  if (std::find(decoders.begin(), decoders.end(), model) != decoders.end())
    return {.decoder = nn::decoder_options(model)};
  if (fs::is_directory(model_folder(model))) return read_gpt_config(model_folder(model));
  std::vector<std::string> names = gpts;
  names.insert(names.end(), decoders.begin(), decoders.end());
  throw train::UsageError(str("--model: expected ", joined(names), " or a folder with config.json, got '",
                              printable(model), "'.", suggestion(model, names)));
}

std::shared_ptr<nn::LanguageModel> make_language_model(const GptConfig& config) {
  if (config.decoder) return std::make_shared<nn::Decoder>(*config.decoder);
  return std::make_shared<nn::Gpt>(config.sizes);
}

namespace {

void load_decoder(nn::Decoder& model, const fs::path& path, const std::string& key) {
  train::LoadWeightsOptions options{.key = key};
  if (model.options.tied) {
    require_tied(open_weights(path, {.key = key}));
    options.rename.leave_out = "lm_head.";
  }
  train::load_weights(model, path, options);
}

}  // namespace

void load_gpt(nn::LanguageModel& model, const fs::path& given, const std::string& wanted) {
  try {
    const std::string key = wanted.empty() && is_nanogpt(given) ? "model" : wanted;
    const fs::path path = weights_in_folder(given);
    if (auto* const decoder = dynamic_cast<nn::Decoder*>(&model)) return load_decoder(*decoder, path, key);
    const std::shared_ptr<const WeightsFile> file = open_weights(path, {.key = key});
    require_tied(file);
    const std::string map = guess_name_map(file->tensors()) == "nanogpt" ? "nanogpt" : "hf_gpt2";
    train::LoadWeightsOptions options{.key = key, .rename = {.map = map}};
    const std::vector<NamedTensor> biases = biases_of(model);
    options.strict =
        map != "nanogpt" || renamed_weights(open_weights(path, {.key = key}), options.rename)->find("ln_f.bias") >= 0;
    const train::LoadedWeights loaded = train::load_weights(model, path, options);
    if (options.strict) return;
    WEFT_CHECK(loaded.misshapen.empty() && loaded.unexpected.empty() && loaded.missing.size() == biases.size(),
               "expected nanoGPT's weights without biases, got ", loaded.text());
    const NoGrad no_grad;
    for (const NamedTensor& bias : biases) bias.tensor.zero_();
  } catch (const Error& error) {
    fail("--weights ", given.string(), ": ", error.what());
  }
}

namespace {

void save_adapter(const fs::path& folder, const StateDict& state, const nn::LoraOptions& lora) {
  fs::create_directories(folder);
  StateDict adapters = state;
  std::erase_if(adapters.tensors, [](const NamedTensor& entry) { return !nn::is_lora(entry.name); });
  std::set<std::string> layers;
  for (NamedTensor& entry : adapters.tensors) {
    const std::string layer = entry.name.substr(0, entry.name.rfind(".lora_"));
    layers.insert(layer.substr(layer.rfind('.') + 1));
    entry.name = "base_model.model." + entry.name;
  }
  write_safetensors(folder / "adapter_model.safetensors", adapters, {{"format", "pt"}});
  const Json config{{"peft_type", "LORA"},      {"task_type", "CAUSAL_LM"}, {"r", lora.rank},
                    {"lora_alpha", lora.alpha}, {"lora_dropout", 0.0},      {"bias", "none"},
                    {"target_modules", layers}, {"fan_in_fan_out", false},  {"inference_mode", true}};
  write_atomically(folder / "adapter_config.json", config.dump(2) + '\n', "configuration");
}

}  // namespace

void save_gpt(const fs::path& folder, StateDict state, const GptConfig& given, const data::BytePair& tokens) {
  fs::create_directories(folder);
  std::erase_if(state.tensors, [](const NamedTensor& entry) { return nn::is_fp8_state(entry.name); });
  if (given.lora) {
    save_adapter(folder.parent_path() / "adapter", state, *given.lora);
    state = nn::merged_lora(std::move(state), given.lora->scale());
  }
  constexpr uint64_t kLargestFile = 5'000'000'000;  // as Hugging Face's
  write_safetensors_shards(
      folder / "model.safetensors",
      given.decoder ? state : renamed_state(state, {.map = "to_hf_gpt2", .add_prefix = "transformer."}), kLargestFile,
      {{"format", "pt"}});
  tokens.save(folder);
  if (!given.generation.empty()) write_atomically(folder / "generation_config.json", given.generation, "configuration");
  const nn::GptOptions& options = given.sizes;
  const Json of_text = tokens.end_of_text() < 0 ? Json() : Json(tokens.end_of_text());
  Json end = of_text;
  if (given.end)
    end = given.end->empty() ? Json() : given.end->size() == 1 ? Json(given.end->front()) : Json(*given.end);
  const Json begin = given.begin ? Json(*given.begin) : of_text;
  if (given.decoder) {
    const bool read = !given.decoder_text.empty();
    if (read) check_ordered(given.decoder_text, "model: config.json");
    Json config = Json::parse(read ? given.decoder_text : train::decoder_config(*given.decoder));
    config.erase("dtype");  // the later name of the same
    config["torch_dtype"] = "float32";
    config["bos_token_id"] = begin;
    config["eos_token_id"] = end;
    write_atomically(folder / "config.json", config.dump(2) + '\n', "configuration");
    return;
  }
  const Json config{{"architectures", {"GPT2LMHeadModel"}},
                    {"model_type", "gpt2"},
                    {"activation_function", options.gelu == Gelu::tanh ? "gelu_new" : "gelu"},
                    {"vocab_size", options.vocabulary},
                    {"n_positions", options.positions},
                    {"n_ctx", options.positions},
                    {"n_embd", options.width},
                    {"n_layer", options.depth},
                    {"n_head", options.heads},
                    {"n_inner", options.hidden > 0 ? Json(options.hidden) : Json()},
                    {"embd_pdrop", options.dropout},
                    {"attn_pdrop", options.dropout},
                    {"resid_pdrop", options.dropout},
                    {"layer_norm_epsilon", options.eps},
                    {"tie_word_embeddings", true},
                    {"bos_token_id", begin},
                    {"eos_token_id", end}};
  write_atomically(folder / "config.json", config.dump(2) + '\n', "configuration");
}

}  // namespace weft::gpt
