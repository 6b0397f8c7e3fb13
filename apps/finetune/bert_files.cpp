// SPDX-License-Identifier: Apache-2.0
#include "apps/finetune/bert_files.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "io/atomic_file.h"
#include "io/file_reader.h"
#include "io/safetensors.h"
#include "train/load_weights.h"

namespace weft::finetune {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAverages = "ema.safetensors";
constexpr std::string_view kAverage = ".ema";  // after the names of Ema's state

bool begins_so(const std::vector<std::string>& names, std::initializer_list<std::string_view> beginnings) {
  return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    return std::any_of(beginnings.begin(), beginnings.end(), [&](std::string_view b) { return name.starts_with(b); });
  });
}

bool has_own_prefix(const fs::path& path) {
  const auto file = open_weights(path);
  return std::any_of(file->tensors().begin(), file->tensors().end(), [](const WeightInfo& tensor) {
    return tensor.name.find("bert.embeddings.") != std::string::npos;
  });
}

/// vocab.txt and what Hugging Face's BertTokenizer reads beside it.
void save_tokenizer(const fs::path& folder, const data::WordPiece& pieces, int64_t longest) {
  std::string vocabulary;
  for (const std::string& token : pieces.vocabulary()) vocabulary += token + '\n';
  write_atomically(folder / "vocab.txt", vocabulary, "vocabulary");
  const nlohmann::ordered_json special{{"cls_token", "[CLS]"},
                                       {"mask_token", "[MASK]"},
                                       {"pad_token", "[PAD]"},
                                       {"sep_token", "[SEP]"},
                                       {"unk_token", "[UNK]"}};
  write_atomically(folder / "special_tokens_map.json", special.dump(2) + '\n', "tokenizer");
  nlohmann::ordered_json tokenizer = special;
  tokenizer.update({{"do_lower_case", true},
                    {"model_max_length", longest},
                    {"strip_accents", nullptr},
                    {"tokenize_chinese_chars", true},
                    {"tokenizer_class", "BertTokenizer"}});
  write_atomically(folder / "tokenizer_config.json", tokenizer.dump(2) + '\n', "tokenizer");
}

}  // namespace

std::string standard_weights(const std::string& model) {
  if (model != "bert_base") return "random";
  for (const char* folder : {"bert-base-uncased", "bert_base_uncased"})
    if (fs::is_directory(folder)) return folder;
  fail(
      "--weights: there is no folder bert-base-uncased here, from whose weights to start. `tools/fetch_weights "
      "bert_base_uncased .` brings it, --weights names another place; --weights random starts from nothing");
}

fs::path weights_file(const fs::path& path) {
  if (!fs::is_directory(path)) return path;
  for (const char* name : {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin"})
    if (fs::exists(path / name)) return path / name;
  fail("--weights ", path.string(), ": expected model.safetensors or pytorch_model.bin in this folder");
}

nn::BertOptions configured(const fs::path& weights, nn::BertOptions sizes, bool with_dropout) {
  const fs::path path = weights_file(weights).parent_path() / "config.json";
  if (!fs::exists(path)) return sizes;
  const std::string text = read_text(path, "configuration");
  try {
    const auto json = nlohmann::json::parse(text);
    const auto only = [&](const char* key, const std::string& known) {
      const std::string value = json.value(key, known);
      WEFT_CHECK(value == known, path.string(), ": expected ", key, " '", known, "', got '", value, "'");
    };
    only("model_type", "bert");
    only("hidden_act", "gelu");
    only("position_embedding_type", "absolute");
    const auto take = [&](const char* key, int64_t& size, int64_t most) {
      size = json.value(key, size);
      WEFT_CHECK(size >= 1 && size <= most, path.string(), ": expected ", key, " of 1 to ", most, ", got ", size);
    };
    take("max_position_embeddings", sizes.positions, 1 << 20);
    take("type_vocab_size", sizes.token_types, 1 << 20);
    take("hidden_size", sizes.width, 1 << 20);
    take("num_hidden_layers", sizes.depth, 1 << 10);
    take("num_attention_heads", sizes.heads, 1 << 10);
    take("intermediate_size", sizes.hidden, 1 << 20);
    sizes.eps = json.value("layer_norm_eps", sizes.eps);
    if (with_dropout) {
      sizes.dropout = json.value("hidden_dropout_prob", sizes.dropout);
      const double attention = json.value("attention_probs_dropout_prob", sizes.dropout);
      WEFT_CHECK(attention == sizes.dropout, path.string(), ": two rates of dropout, ", sizes.dropout, " and ",
                 attention, " of attention. Choose one by --dropout");
    }
  } catch (const nlohmann::json::exception& error) {
    fail(path.string(), ": expected Hugging Face's configuration of a BERT, got '", error.what(), "'");
  }
  return sizes;
}

bool load_bert(nn::Bert& model, const fs::path& given) {
  const fs::path path = weights_file(given);
  try {
    train::LoadWeightsOptions options;
    options.strict = false;
    options.rename.map = "hf_bert";
    if (!has_own_prefix(path)) options.rename.add_prefix = "bert.";
    const train::LoadedWeights loaded = train::load_weights(model, path, options);
    const bool fits = begins_so(loaded.missing, {"classifier.", "bert.pooler."}) &&
                      begins_so(loaded.unexpected, {"cls.", "bert.cls."}) &&
                      begins_so(loaded.misshapen, {"classifier."});
    WEFT_CHECK(fits, loaded.text());
    return loaded.missing.empty() && loaded.misshapen.empty();
  } catch (const Error& error) {
    fail("--weights ", path.string(), ": ", error.what());
  }
}

void save_averages(const fs::path& folder, const StateDict& averages) {
  StateDict weights;
  for (const NamedTensor& entry : averages.tensors)
    weights.tensors.push_back({entry.name.substr(0, entry.name.size() - kAverage.size()), entry.tensor});
  write_safetensors(folder / kAverages, renamed_state(weights, {.map = "to_hf_bert"}), {{"format", "pt"}});
}

StateDict load_averages(const fs::path& folder, int64_t updates) {
  const fs::path path = folder / kAverages;
  WEFT_CHECK(fs::exists(path), "checkpoint ", folder.string(), " was made without --ema: its averages cannot go on");
  StateDict averages;
  for (const NamedTensor& entry : renamed_state(read_safetensors(path).state, {.map = "hf_bert"}).tensors)
    averages.tensors.push_back({entry.name + std::string(kAverage), entry.tensor});
  averages.scalars.push_back({"updates", static_cast<double>(updates)});
  return averages;
}

void save_bert(const fs::path& folder, const StateDict& state, const nn::BertOptions& options,
               const data::WordPiece& pieces) {
  fs::create_directories(folder);
  write_safetensors(folder / "model.safetensors", renamed_state(state, {.map = "to_hf_bert"}), {{"format", "pt"}});
  save_tokenizer(folder, pieces, options.positions);
  const nlohmann::ordered_json config{{"architectures", {"BertForSequenceClassification"}},
                                      {"model_type", "bert"},
                                      {"vocab_size", options.vocabulary},
                                      {"hidden_size", options.width},
                                      {"num_hidden_layers", options.depth},
                                      {"num_attention_heads", options.heads},
                                      {"intermediate_size", options.hidden},
                                      {"hidden_act", "gelu"},
                                      {"hidden_dropout_prob", options.dropout},
                                      {"attention_probs_dropout_prob", options.dropout},
                                      {"max_position_embeddings", options.positions},
                                      {"type_vocab_size", options.token_types},
                                      {"layer_norm_eps", options.eps},
                                      {"num_labels", options.classes},
                                      {"pad_token_id", pieces.padding_id()}};
  write_atomically(folder / "config.json", config.dump(2) + '\n', "configuration");
}

}  // namespace weft::finetune
