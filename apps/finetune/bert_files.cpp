// SPDX-License-Identifier: Apache-2.0
#include "apps/finetune/bert_files.h"

#include <algorithm>

#include "core/text.h"
#include "io/atomic_file.h"
#include "io/safetensors.h"
#include "train/load_weights.h"

namespace weft::finetune {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAverages = "ema.safetensors";
const std::string kAverage = ".ema";  // after the names of Ema's state

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

std::string hf_names(nn::BertKind kind) { return "hf_" + published_type(kind); }

int64_t vocabulary_in(const fs::path& path, const std::string& key) {
  const auto file = open_weights(path, {.key = key});
  for (const WeightInfo& tensor : file->tensors())
    if (tensor.name.ends_with("embeddings.word_embeddings.weight") && tensor.sizes.rank() == 2) return tensor.sizes[0];
  fail("--weights ", path.string(), ": expected a BERT, got no tensor …embeddings.word_embeddings.weight");
}

LoadedBert load_bert(nn::Bert& model, const fs::path& given, bool with_classifier, const std::string& key) {
  const fs::path path = weights_in_folder(given);
  try {
    train::LoadWeightsOptions options;
    options.strict = false;
    options.key = key;
    const nn::BertKind kind = model.options.kind;
    const auto file = open_weights(path, {.key = key});
    options.rename.map = hf_names(kind);
    if (!names(*file, published_type(kind) + ".embeddings.")) options.rename.put_first = published_type(kind) + '.';
    if (!with_classifier) options.rename.leave_out = "classifier.";
    const train::LoadedWeights loaded = train::load_weights(model, path, options);
    std::vector<std::string> others;  // heads of other tasks; those of pre-training are as expected
    bool fits =
        begins_so(loaded.missing, {"classifier.", "bert.pooler."}) && begins_so(loaded.misshapen, {"classifier."});
    for (const std::string& name : loaded.unexpected) {
      if (begins_so({name}, {"bert.embeddings.", "bert.encoder."})) fits = false;
      if (!begins_so({name}, {"cls.", "bert.cls.", "lm_head.", "bert.lm_head.", "vocab_", "bert.vocab_"}))
        others.push_back(name);
    }
    WEFT_CHECK(fits, loaded.text());
    std::vector<std::string> fresh = loaded.missing;
    fresh.insert(fresh.end(), loaded.misshapen.begin(), loaded.misshapen.end());
    LoadedBert result{.whole = fresh.empty(), .note = {}};
    if (!fresh.empty())
      result.note = str("these weights start at random, ", path.string(), " has none that fit: ", joined(fresh, 5));
    if (!others.empty())
      result.note +=
          str(result.note.empty() ? "" : "; ", "these of ", path.string(), " are left out: ", joined(others, 5));
    return result;
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

void load_averages(const fs::path& folder, int64_t updates, nn::BertKind kind, train::Strategy& strategy,
                   optim::Ema& averages) {
  const fs::path path = folder / kAverages;
  WEFT_CHECK(fs::exists(path), "checkpoint ", folder.string(),
             " was made without --ema: its averages cannot be resumed");
  StateDict state = averages.state_dict();
  state.scalars = {{"updates", static_cast<double>(updates)}};
  train::read_parts(strategy, *renamed_weights(open_weights(path), {.map = hf_names(kind)}), kAverage, state);
  averages.load_state_dict(state, {});
}

void save_bert(const fs::path& folder, const StateDict& state, const nn::BertOptions& options,
               const SavedConfiguration& saved, const Tokenizer& tokenizer) {
  fs::create_directories(folder);
  write_safetensors(folder / "model.safetensors", renamed_state(state, {.map = "to_" + hf_names(options.kind)}),
                    {{"format", "pt"}});
  save_configuration(folder, options, saved, tokenizer);
}

void save_configuration(const fs::path& folder, const nn::BertOptions& options, const SavedConfiguration& saved,
                        const Tokenizer& tokenizer) {
  save_tokenizer(folder, tokenizer, options.tokens());
  write_atomically(folder / "config.json", configuration_text(options, saved), "configuration");
}

}  // namespace weft::finetune
