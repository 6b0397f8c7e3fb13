// SPDX-License-Identifier: Apache-2.0
#include "apps/finetune/configuration.h"

#include <algorithm>

#include "apps/finetune/json_values.h"
#include "core/text.h"
#include "io/file_reader.h"
#include "io/json.h"
#include "kernels/error.h"

namespace weft::finetune {
namespace {

namespace fs = std::filesystem;

/// Hugging Face's name of a kind, and the keys of its config.json.
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
    {nn::BertKind::roberta, "xlm-roberta", "XLMRoberta", "hidden_act", "hidden_size", "num_hidden_layers",
     "num_attention_heads", "intermediate_size", "hidden_dropout_prob", "attention_probs_dropout_prob",
     "classifier_dropout"},
    {nn::BertKind::roberta, "camembert", "Camembert", "hidden_act", "hidden_size", "num_hidden_layers",
     "num_attention_heads", "intermediate_size", "hidden_dropout_prob", "attention_probs_dropout_prob",
     "classifier_dropout"},
    {nn::BertKind::distilbert, "distilbert", "DistilBert", "activation", "dim", "n_layers", "n_heads", "hidden_dim",
     "dropout", "attention_dropout", "seq_classif_dropout"},
};

/// The names of Hugging Face's ACT2FN that mean the same function; Weft writes the first of each.
struct ActivationName {
  const char* name;
  nn::BertActivation activation;
};
constexpr ActivationName kActivations[] = {
    {"gelu", nn::BertActivation::gelu},           {"gelu_python", nn::BertActivation::gelu},
    {"gelu_new", nn::BertActivation::gelu_tanh},  {"gelu_pytorch_tanh", nn::BertActivation::gelu_tanh},
    {"gelu_fast", nn::BertActivation::gelu_tanh}, {"relu", nn::BertActivation::relu},
    {"silu", nn::BertActivation::silu},           {"swish", nn::BertActivation::silu},
};

const Published& published(nn::BertKind kind) {
  return *std::find_if(std::begin(kPublished), std::end(kPublished),
                       [&](const Published& p) { return p.kind == kind; });
}

std::string shown(const nlohmann::json& value) {
  return printable(value.is_string() ? value.get<std::string>() : value.dump());
}

/// Names of a configuration, which may be numbers.
std::string name_of(const nlohmann::json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

const Published& kind_of(const nlohmann::json& json) {
  std::string type = value_or<std::string>(json, "model_type", "");
  std::vector<std::string> models;
  for (const nlohmann::json& name : value_or(json, "architectures", nlohmann::json::array())) models.push_back(name);
  const auto is_of = [&](const Published& p) {
    return models.empty() || std::any_of(models.begin(), models.end(), [&](const std::string& name) {
             return name.starts_with(p.model) || name.starts_with(str("TF", p.model)) ||
                    name.starts_with(str("Flax", p.model));
           });
  };
  if (type.empty())  // before transformers 2.9
    for (const Published& p : kPublished)
      if (is_of(p)) type = type.empty() ? p.type : type;
  const auto found =
      std::find_if(std::begin(kPublished), std::end(kPublished), [&](const Published& p) { return type == p.type; });
  WEFT_CHECK(found != std::end(kPublished),
             "expected model_type 'bert', 'roberta', 'xlm-roberta', 'camembert' or 'distilbert', got '",
             printable(type), "'");
  WEFT_CHECK(is_of(*found), "expected architectures of ", found->model, "… as model_type is '", type, "', got '",
             printable(joined(models)), "'");
  return *found;
}

/// id2label, num_labels, problem_type.
void take_labels(const nlohmann::json& json, Configuration& result) {
  result.problem = value_or<std::string>(json, "problem_type", "");
  WEFT_CHECK(
      result.problem.empty() || result.problem == "regression" || result.problem == "single_label_classification",
      "expected problem_type 'single_label_classification' or 'regression', got '", printable(result.problem), "'");
  std::vector<std::string> names;
  if (says(json, "id2label")) {
    const nlohmann::json& labels = json["id2label"];
    names.resize(labels.size());
    std::vector<bool> named(labels.size());
    for (const auto& [key, value] : labels.items()) {
      const size_t id = key.size() < 9 && key.find_first_not_of("0123456789") == key.npos && !key.empty()
                            ? static_cast<size_t>(std::stoul(key))
                            : names.size();
      WEFT_CHECK(id < names.size() && !named[id], "expected the ids 0 to ", names.size(), " - 1 in id2label, got '",
                 printable(key), "'");
      named[id] = true;
      names[id] = name_of(value);
      WEFT_CHECK(std::count(names.begin(), names.begin() + static_cast<ptrdiff_t>(names.size()), names[id]) == 1,
                 "id2label gives the name '", printable(names[id]), "' twice");
    }
    if (says(json, "label2id"))
      for (const auto& [name, value] : json["label2id"].items()) {
        const auto id = static_cast<size_t>(json_integer<uint32_t>(value, "label2id"));
        const bool known = std::find(names.begin(), names.end(), name) != names.end();
        WEFT_CHECK(!known || (id < names.size() && names[id] == name), "id2label and label2id disagree on '",
                   printable(name), "'");
      }
  }
  const char* const number = says(json, "num_labels") ? "num_labels" : "_num_labels";  // the latter: transformers 3
  if (says(json, number)) {
    result.classes = json_integer<int64_t>(json[number], number);
    WEFT_CHECK(result.classes >= 1 && result.classes <= 1 << 20, "expected num_labels of 1 to ", 1 << 20, ", got ",
               result.classes);
    WEFT_CHECK(names.empty() || result.classes == static_cast<int64_t>(names.size()), "num_labels is ", result.classes,
               ", id2label names ", names.size());
  } else {
    result.classes = static_cast<int64_t>(names.size());
  }
  WEFT_CHECK(result.problem != "regression" || result.classes <= 1, "expected one label of a regression, got ",
             result.classes);
  bool says_nothing = true;
  for (size_t id = 0; id < names.size(); ++id) says_nothing &= names[id] == str("LABEL_", id);
  if (!says_nothing) result.labels = names;
}

void take_sizes(const nlohmann::json& json, const Published& p, bool with_dropout, nn::BertOptions& sizes) {
  const auto only = [&](const char* key, const nlohmann::json& known) {
    WEFT_CHECK(!says(json, key) || json[key] == known, "expected ", key, " '", shown(known), "', got '",
               shown(json[key]), "'");
  };
  only("position_embedding_type", "absolute");
  only("sinusoidal_pos_embds", false);
  only("is_decoder", false);
  only("add_cross_attention", false);
  only("pruned_heads", nlohmann::json::object());
  for (const char* key : {"quantization_config", "auto_map"})  // the model is defined by its own Python code
    WEFT_CHECK(!says(json, key), "expected no ", key, ", got '", shown(json[key]), "'");
  if (says(json, p.activation)) {
    const std::string name = name_of(json[p.activation]);
    const auto found = std::find_if(std::begin(kActivations), std::end(kActivations),
                                    [&](const ActivationName& a) { return name == a.name; });
    std::vector<std::string> names;
    for (const ActivationName& a : kActivations) names.emplace_back(a.name);
    WEFT_CHECK(found != std::end(kActivations), "expected ", p.activation, " ", joined(names), ", got '",
               printable(name), "'");
    sizes.activation = found->activation;
  }
  const auto take = [&](const char* key, int64_t& size, int64_t least, int64_t most) {
    if (says(json, key)) size = json_integer<int64_t>(json[key], key);
    WEFT_CHECK(size >= least && size <= most, "expected ", key, " of ", least, " to ", most, ", got ", size);
  };
  if (p.kind == nn::BertKind::roberta) {  // its configuration's meaning of a missing key
    sizes.positions = 512;
    sizes.token_types = 2;
    sizes.eps = 1e-12;
  }
  sizes.padding = p.kind == nn::BertKind::roberta ? 1 : 0;
  take("pad_token_id", sizes.padding, 0, 1 << 24);
  take("max_position_embeddings", sizes.positions, 1, 1 << 20);
  if (p.kind != nn::BertKind::distilbert) take("type_vocab_size", sizes.token_types, 1, 1 << 20);
  take(p.width, sizes.width, 1, 1 << 20);
  take(p.depth, sizes.depth, 1, 1 << 10);
  take(p.heads, sizes.heads, 1, 1 << 10);
  take(p.hidden, sizes.hidden, 1, 1 << 20);
  WEFT_CHECK(sizes.width % sizes.heads == 0, "expected ", p.width, " that ", p.heads, " divides, got ", sizes.width,
             " and ", sizes.heads);
  WEFT_CHECK(sizes.tokens() >= 3, "expected max_position_embeddings for 3 tokens at least, got ", sizes.positions);
  if (p.kind != nn::BertKind::distilbert) sizes.eps = value_or(json, "layer_norm_eps", sizes.eps);
  if (!with_dropout) return;
  const auto rate = [&](const char* key, double& dropout) {
    dropout = value_or(json, key, dropout);
    WEFT_CHECK(dropout == -1 || (dropout >= 0 && dropout < 1), "expected ", key, " of 0 to below 1, got ", dropout);
  };
  rate(p.dropout, sizes.dropout);
  rate(p.attention_dropout, sizes.attention_dropout);
  rate(p.head_dropout, sizes.head_dropout);
}

Configuration parsed(const nlohmann::json& json, const nn::BertOptions& given, bool with_dropout) {
  Configuration result;
  const Published& p = kind_of(json);
  result.sizes = given;
  if (given.kind != p.kind)
    result.sizes = nn::bert_options(p.kind == nn::BertKind::bert ? "bert_base" : str(published_type(p.kind), "_base"));
  take_sizes(json, p, with_dropout, result.sizes);
  take_labels(json, result);
  if (says(json, "vocab_size")) {
    result.vocabulary = json_integer<int64_t>(json["vocab_size"], "vocab_size");
    WEFT_CHECK(result.vocabulary >= 1 && result.vocabulary <= 1 << 24, "expected vocab_size of 1 to ", 1 << 24,
               ", got ", result.vocabulary);
  }
  return result;
}

}  // namespace

std::string published_type(nn::BertKind kind) { return published(kind).type; }

Configuration read_configuration(const fs::path& folder, const nn::BertOptions& sizes, bool with_dropout) {
  const fs::path path = folder / "config.json";
  if (!fs::exists(path)) return {.sizes = sizes, .labels = {}};
  const std::string text = read_text(path, "configuration");
  check_nesting(text, path.string());
  try {
    Configuration result = parsed(nlohmann::json::parse(text), sizes, with_dropout);
    result.text = text;
    return result;
  } catch (const nlohmann::json::exception& error) {
    fail(path.string(), ": expected Hugging Face's configuration of a BERT, got '", printable(error.what()), "'");
  } catch (const Error& error) {
    fail(path.string(), ": ", error.what());
  }
}

std::string configuration_text(const nn::BertOptions& options, const SavedConfiguration& saved) {
  nlohmann::json config = saved.from.empty() ? nlohmann::json::object() : nlohmann::json::parse(saved.from);
  const bool as_read = !saved.from.empty() && kind_of(config).kind == options.kind;  // XLM-RoBERTa is a roberta, too
  const Published& p = as_read ? kind_of(config) : published(options.kind);
  for (const char* key : {"num_labels", "_num_labels", "id2label", "label2id", "problem_type"}) config.erase(key);
  const auto activation = std::find_if(std::begin(kActivations), std::end(kActivations),
                                       [&](const ActivationName& a) { return a.activation == options.activation; });
  config["architectures"] = nlohmann::json::array({str(p.model, "ForSequenceClassification")});
  config["model_type"] = p.type;
  config["vocab_size"] = options.vocabulary;
  config[p.width] = options.width;
  config[p.depth] = options.depth;
  config[p.heads] = options.heads;
  config[p.hidden] = options.hidden;
  config[p.activation] = activation->name;
  config[p.dropout] = options.dropout;
  config[p.attention_dropout] = options.attention_dropout >= 0 ? options.attention_dropout : options.dropout;
  config["max_position_embeddings"] = options.positions;
  if (options.head_dropout >= 0) config[p.head_dropout] = options.head_dropout;
  if (options.kind != nn::BertKind::distilbert) {
    config["type_vocab_size"] = options.token_types;
    config["layer_norm_eps"] = options.eps;
  }
  config["num_labels"] = options.classes;
  config["problem_type"] = saved.regression ? "regression" : "single_label_classification";
  for (size_t id = 0; id < static_cast<size_t>(options.classes); ++id) {
    const std::string name = id < saved.labels.size() ? saved.labels[id] : str("LABEL_", id);
    config["id2label"][std::to_string(id)] = name;
    config["label2id"][name] = id;
  }
  config["pad_token_id"] = options.padding_row();
  config[config.contains("dtype") ? "dtype" : "torch_dtype"] = "float32";
  return config.dump(2) + '\n';
}

}  // namespace weft::finetune
