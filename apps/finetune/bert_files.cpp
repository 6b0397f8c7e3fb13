// SPDX-License-Identifier: Apache-2.0
#include "apps/finetune/bert_files.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "io/atomic_file.h"
#include "io/file_reader.h"
#include "io/json.h"
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

/// Whether a name of the file contains this.
bool names(const WeightsFile& file, std::string_view part) {
  return std::any_of(file.tensors().begin(), file.tensors().end(),
                     [&](const WeightInfo& tensor) { return tensor.name.find(part) != std::string::npos; });
}

/// What Hugging Face's tokenizers of these models read beside their vocabulary.
void save_tokenizer(const fs::path& folder, const data::TextEncoder& tokens, const nn::BertOptions& options) {
  using Json = nlohmann::ordered_json;
  tokens.save(folder);
  const bool pairs = options.kind == nn::BertKind::roberta;
  const Json special =
      pairs ? Json{{"bos_token", "<s>"},   {"cls_token", "<s>"},  {"eos_token", "</s>"}, {"mask_token", "<mask>"},
                   {"pad_token", "<pad>"}, {"sep_token", "</s>"}, {"unk_token", "<unk>"}}
            : Json{{"cls_token", "[CLS]"},
                   {"mask_token", "[MASK]"},
                   {"pad_token", "[PAD]"},
                   {"sep_token", "[SEP]"},
                   {"unk_token", "[UNK]"}};
  write_atomically(folder / "special_tokens_map.json", special.dump(2) + '\n', "tokenizer");
  Json tokenizer = special;
  tokenizer["model_max_length"] = options.tokens();
  tokenizer.update(
      pairs ? Json{{"add_prefix_space", false}, {"tokenizer_class", "RobertaTokenizer"}}
            : Json{{"do_lower_case", true},
                   {"strip_accents", nullptr},
                   {"tokenize_chinese_chars", true},
                   {"tokenizer_class", options.kind == nn::BertKind::bert ? "BertTokenizer" : "DistilBertTokenizer"}});
  write_atomically(folder / "tokenizer_config.json", tokenizer.dump(2) + '\n', "tokenizer");
}

/// What Hugging Face calls a kind, and the keys of its config.json.
struct Published {
  nn::BertKind kind;
  const char *type, *model, *activation, *width, *depth, *heads, *hidden, *dropout, *attention_dropout, *head_dropout;
};
constexpr Published kPublished[] = {
    {nn::BertKind::bert, "bert", "Bert", "hidden_act", "hidden_size", "num_hidden_layers", "num_attention_heads",
     "intermediate_size", "hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout"},
    {nn::BertKind::roberta, "roberta", "Roberta", "hidden_act", "hidden_size", "num_hidden_layers",
     "num_attention_heads", "intermediate_size", "hidden_dropout_prob", "attention_probs_dropout_prob",
     "classifier_dropout"},
    {nn::BertKind::distilbert, "distilbert", "DistilBert", "activation", "dim", "n_layers", "n_heads", "hidden_dim",
     "dropout", "attention_dropout", "seq_classif_dropout"},
};

const Published& published(nn::BertKind kind) {
  return *std::find_if(std::begin(kPublished), std::end(kPublished),
                       [&](const Published& p) { return p.kind == kind; });
}

}  // namespace

std::string standard_weights(const std::string& model) {
  std::string name = model == "bert_base"         ? "bert-base-uncased"
                     : model == "roberta_base"    ? "roberta-base"
                     : model == "distilbert_base" ? "distilbert-base-uncased"
                                                  : "";
  if (name.empty()) return "random";
  std::string fetched = name;
  std::replace(fetched.begin(), fetched.end(), '-', '_');
  for (const std::string& folder : {name, fetched})
    if (fs::is_directory(folder)) return folder;
  fail("--weights: there is no folder ", name, " here, from whose weights to start. ",
       model == "bert_base" ? "`tools/fetch_weights bert_base_uncased .` brings it" : "Hugging Face has it",
       ", --weights names another place; --weights random starts from nothing");
}

std::string hf_names(nn::BertKind kind) { return str("hf_", published(kind).type); }

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
  check_nesting(text, path.string());
  try {
    const auto json = nlohmann::json::parse(text);
    const std::string type = json.value("model_type", "bert");
    const auto found = std::find_if(std::begin(kPublished), std::end(kPublished),
                                    [&](const Published& known) { return type == known.type; });
    WEFT_CHECK(found != std::end(kPublished), path.string(),
               ": expected model_type 'bert', 'roberta' or 'distilbert', got '", printable(type), "'");
    const Published& p = *found;
    if (sizes.kind != p.kind) {
      const nn::BertOptions base = nn::bert_options(p.kind == nn::BertKind::bert ? "bert_base" : str(type, "_base"));
      sizes = base;
    }
    const auto only = [&](const char* key, const auto& known) {
      const auto value = json.value(key, known);
      WEFT_CHECK(value == known, path.string(), ": expected ", key, " '", known, "', got '", printable(str(value)),
                 "'");
    };
    only(p.activation, std::string("gelu"));
    only("position_embedding_type", std::string("absolute"));
    only("sinusoidal_pos_embds", false);
    only("pad_token_id", int64_t{p.kind == nn::BertKind::roberta ? 1 : 0});
    const auto take = [&](const char* key, int64_t& size, int64_t most) {
      if (json.contains(key)) size = json_integer<int64_t>(json[key], str(path.string(), ": ", key));
      WEFT_CHECK(size >= 1 && size <= most, path.string(), ": expected ", key, " of 1 to ", most, ", got ", size);
    };
    take("max_position_embeddings", sizes.positions, 1 << 20);
    if (p.kind != nn::BertKind::distilbert) take("type_vocab_size", sizes.token_types, 1 << 20);
    take(p.width, sizes.width, 1 << 20);
    take(p.depth, sizes.depth, 1 << 10);
    take(p.heads, sizes.heads, 1 << 10);
    take(p.hidden, sizes.hidden, 1 << 20);
    sizes.eps = json.value("layer_norm_eps", sizes.eps);
    if (with_dropout) {
      sizes.dropout = json.value(p.dropout, sizes.dropout);
      const double attention = json.value(p.attention_dropout, sizes.dropout);
      WEFT_CHECK(attention == sizes.dropout, path.string(), ": two rates of dropout, ", sizes.dropout, " and ",
                 attention, " of attention. Choose one by --dropout");
      if (json.contains(p.head_dropout) && !json[p.head_dropout].is_null()) sizes.head_dropout = json[p.head_dropout];
    }
  } catch (const nlohmann::json::exception& error) {
    fail(path.string(), ": expected Hugging Face's configuration of a BERT, got '", printable(error.what()), "'");
  }
  return sizes;
}

bool load_bert(nn::Bert& model, const fs::path& given) {
  const fs::path path = weights_file(given);
  try {
    train::LoadWeightsOptions options;
    options.strict = false;
    const auto file = open_weights(path);
    // An encoder alone: of RoBERTa it has BERT's names.
    const bool alone = !names(*file, "bert.embeddings.") && !names(*file, "roberta.embeddings.");
    options.rename.map = alone ? "hf_bert" : hf_names(model.options.kind);
    if (alone) options.rename.add_prefix = "bert.";
    const train::LoadedWeights loaded = train::load_weights(model, path, options);
    const bool fits = begins_so(loaded.missing, {"classifier.", "bert.pooler."}) &&
                      begins_so(loaded.unexpected, {"cls.", "bert.cls.", "lm_head.", "vocab_"}) &&
                      begins_so(loaded.misshapen, {"classifier."});
    WEFT_CHECK(fits, loaded.text());
    return loaded.missing.empty() && loaded.misshapen.empty();
  } catch (const Error& error) {
    fail("--weights ", path.string(), ": ", error.what());
  }
}

void save_averages(const fs::path& folder, const StateDict& averages, nn::BertKind kind) {
  StateDict weights;
  for (const NamedTensor& entry : averages.tensors)
    weights.tensors.push_back({entry.name.substr(0, entry.name.size() - kAverage.size()), entry.tensor});
  write_safetensors(folder / kAverages, renamed_state(weights, {.map = "to_" + hf_names(kind)}), {{"format", "pt"}});
}

StateDict load_averages(const fs::path& folder, int64_t updates, nn::BertKind kind) {
  const fs::path path = folder / kAverages;
  WEFT_CHECK(fs::exists(path), "checkpoint ", folder.string(),
             " was made without --ema: its averages cannot be resumed");
  StateDict averages;
  for (const NamedTensor& entry : renamed_state(read_safetensors(path).state, {.map = hf_names(kind)}).tensors)
    averages.tensors.push_back({entry.name + std::string(kAverage), entry.tensor});
  averages.scalars.push_back({"updates", static_cast<double>(updates)});
  return averages;
}

void save_bert(const fs::path& folder, const StateDict& state, const nn::BertOptions& options,
               const data::TextEncoder& tokens) {
  fs::create_directories(folder);
  const Published& p = published(options.kind);
  write_safetensors(folder / "model.safetensors", renamed_state(state, {.map = "to_" + hf_names(options.kind)}),
                    {{"format", "pt"}});
  save_tokenizer(folder, tokens, options);
  nlohmann::ordered_json config{{"architectures", {str(p.model, "ForSequenceClassification")}},
                                {"model_type", p.type},
                                {"vocab_size", options.vocabulary},
                                {p.width, options.width},
                                {p.depth, options.depth},
                                {p.heads, options.heads},
                                {p.hidden, options.hidden},
                                {p.activation, "gelu"},
                                {p.dropout, options.dropout},
                                {p.attention_dropout, options.dropout},
                                {"max_position_embeddings", options.positions}};
  if (options.head_dropout >= 0) config[p.head_dropout] = options.head_dropout;
  if (options.kind != nn::BertKind::distilbert) {
    config["type_vocab_size"] = options.token_types;
    config["layer_norm_eps"] = options.eps;
  }
  config["num_labels"] = options.classes;
  config["pad_token_id"] = tokens.padding_id();
  write_atomically(folder / "config.json", config.dump(2) + '\n', "configuration");
}

std::unique_ptr<data::TextEncoder> read_tokens(const fs::path& path, nn::BertKind kind) {
  if (kind == nn::BertKind::roberta) return std::make_unique<data::RobertaPairs>(data::BytePair::from_folder(path));
  return std::make_unique<data::WordPiece>(
      data::WordPiece::from_file(fs::is_directory(path) ? path / "vocab.txt" : path));
}

}  // namespace weft::finetune
