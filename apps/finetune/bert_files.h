// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <string>

#include "apps/finetune/configuration.h"
#include "apps/finetune/tokenizer_files.h"
#include "core/state_dict.h"
#include "nn/models/bert.h"
#include "optim/ema.h"
#include "train/strategy.h"

namespace weft::finetune {

/// The weights that --weights auto means: for bert_base the folder bert-base-uncased of the working folder (or
/// bert_base_uncased, as from tools/fetch_weights). roberta_base has roberta-base, distilbert_base has
/// distilbert-base-uncased, other models have `random`. Errors: neither folder is there.
std::string standard_weights(const std::string& model);

/// The map of names (io/weights/name_map.h) from Hugging Face's files of this kind; its inverse begins with `to_`.
std::string hf_names(nn::BertKind kind);

/// Rows of the word embeddings in this file (weights_in_folder()). `key`: LoadWeightsOptions::key. Errors: it has none.
int64_t vocabulary_in(const std::filesystem::path& path, const std::string& key = "");

struct LoadedBert {
  bool whole = false;  ///< the classifier was there
  std::string note;    ///< the file's missing or extra tensors, for a warning; "": none
};

/// Copies Hugging Face's weights into the model. The classifier may be missing (it keeps its own start), heads of other
/// tasks are left out, and the encoder may stand without its `bert.`. Without `with_classifier` that keeps its own
/// start, too. `key`: LoadWeightsOptions::key. Errors: other names or shapes that do not fit.
LoadedBert load_bert(nn::Bert& model, const std::filesystem::path& path, bool with_classifier = true,
                     const std::string& key = "");

/// Writes FOLDER/model.safetensors under Hugging Face's names, config.json, and the tokenizer's files. `state`: the
/// model's.
void save_bert(const std::filesystem::path& folder, const StateDict& state, const nn::BertOptions& options,
               const SavedConfiguration& saved, const Tokenizer& tokenizer);

/// Writes config.json and the tokenizer's files alone.
void save_configuration(const std::filesystem::path& folder, const nn::BertOptions& options,
                        const SavedConfiguration& saved, const Tokenizer& tokenizer);

/// FOLDER/ema.safetensors: the averages of the weights under the same names. `averages`: Ema's state.
void save_averages(const std::filesystem::path& folder, const StateDict& averages, nn::BertKind kind);
/// Reads this rank's part of that file alone. Errors: there is no such file: the checkpoint was made without averages.
void load_averages(const std::filesystem::path& folder, int64_t updates, nn::BertKind kind, train::Strategy& strategy,
                   optim::Ema& averages);

}  // namespace weft::finetune
