// SPDX-License-Identifier: Apache-2.0
#include "apps/gpt/gpt_files.h"

#include <nlohmann/json.hpp>

#include "io/atomic_file.h"
#include "io/file_reader.h"
#include "io/json.h"
#include "io/safetensors.h"
#include "train/load_weights.h"

namespace weft::gpt {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

fs::path weights_file(const fs::path& path) {
  if (!fs::is_directory(path)) return path;
  for (const char* name : {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin"})
    if (fs::exists(path / name)) return path / name;
  fail("expected model.safetensors or pytorch_model.bin in this folder");
}

/// A file may hold the output layer beside the embedding whose weight it shares.
void require_tied(const WeightsFile& file) {
  const int64_t head = file.find("lm_head.weight");
  int64_t tokens = file.find("transformer.wte.weight");
  if (tokens < 0) tokens = file.find("wte.weight");
  if (head < 0 || tokens < 0) return;
  const auto values = [&](int64_t index) {
    return file.read(static_cast<size_t>(index)).to(DType::f32).to_vector<float>();
  };
  WEFT_CHECK(values(head) == values(tokens),
             "lm_head.weight differs from wte.weight: nn::Gpt's output layer is the token embedding");
}

}  // namespace

fs::path model_folder(const fs::path& path) {
  return fs::exists(path / "model" / "config.json") ? path / "model" : path;
}

nn::GptOptions read_gpt_options(const fs::path& folder) {
  const fs::path path = folder / "config.json";
  const std::string text = read_text(path, "model");
  check_nesting(text, "model: " + path.string());
  try {
    const auto json = nlohmann::json::parse(text);  // in any order: the ordered kind searches names one by one
    const auto size = [&](const char* key) {
      constexpr int64_t kMost = 1 << 20;
      const auto value = json_integer<int64_t>(json.at(key), str("model: ", path.string(), ": ", key));
      WEFT_CHECK(value >= 1 && value <= kMost, "model: ", path.string(), ": expected ", key, " of 1 to ", kMost,
                 ", got ", value);
      return value;
    };
    const auto expect = [&](const char* key, const nlohmann::json& wanted) {
      const auto found = json.find(key);
      const nlohmann::json got = found == json.end() ? wanted : *found;
      WEFT_CHECK(got == wanted, "model: ", path.string(), ": expected ", key, " ", wanted.dump(), ", got ",
                 printable(got.dump()));
    };
    const int64_t width = size("n_embd");
    expect("model_type", "gpt2");
    expect("activation_function", "gelu_new");
    expect("tie_word_embeddings", true);
    expect("scale_attn_weights", true);
    expect("scale_attn_by_inverse_layer_idx", false);
    if (json.contains("n_inner") && !json["n_inner"].is_null()) expect("n_inner", 4 * width);
    return {.vocabulary = size("vocab_size"),
            .positions = size("n_positions"),
            .width = width,
            .depth = size("n_layer"),
            .heads = size("n_head"),
            .eps = json.value("layer_norm_epsilon", 1e-5)};
  } catch (const nlohmann::json::exception& error) {
    fail("model: ", path.string(), ": expected the configuration of Hugging Face's GPT-2, got '",
         printable(error.what()), "'");
  }
}

void load_gpt(nn::Gpt& model, const fs::path& given) {
  try {
    const fs::path path = weights_file(given);
    require_tied(*open_weights(path));
    train::load_weights(model, path, {.rename = {.map = "hf_gpt2"}});
  } catch (const Error& error) {
    fail("--weights ", given.string(), ": ", error.what());
  }
}

void save_gpt(const fs::path& folder, StateDict state, const nn::GptOptions& options, const data::BytePair& tokens) {
  fs::create_directories(folder);
  std::erase_if(state.tensors, [](const NamedTensor& entry) { return nn::is_fp8_state(entry.name); });
  write_safetensors(folder / "model.safetensors",
                    renamed_state(state, {.map = "to_hf_gpt2", .add_prefix = "transformer."}), {{"format", "pt"}});
  tokens.save(folder);
  const Json end = tokens.end_of_text() < 0 ? Json() : Json(tokens.end_of_text());
  const Json config{{"architectures", {"GPT2LMHeadModel"}},
                    {"model_type", "gpt2"},
                    {"activation_function", "gelu_new"},
                    {"vocab_size", options.vocabulary},
                    {"n_positions", options.positions},
                    {"n_ctx", options.positions},
                    {"n_embd", options.width},
                    {"n_layer", options.depth},
                    {"n_head", options.heads},
                    {"embd_pdrop", options.dropout},
                    {"attn_pdrop", options.dropout},
                    {"resid_pdrop", options.dropout},
                    {"layer_norm_epsilon", options.eps},
                    {"tie_word_embeddings", true},
                    {"bos_token_id", end},
                    {"eos_token_id", end}};
  write_atomically(folder / "config.json", config.dump(2) + '\n', "configuration");
}

}  // namespace weft::gpt
