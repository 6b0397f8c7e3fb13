// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <string>

#include "core/state_dict.h"
#include "data/text/wordpiece.h"
#include "nn/models/bert.h"

namespace weft::finetune {

/// The weights that --weights auto means: for bert_base the folder bert-base-uncased of the working folder (or
/// bert_base_uncased, as tools/fetch_weights calls it), for any other model `random`. Errors: neither folder is there.
std::string standard_weights(const std::string& model);

/// The file of weights that `path` means: itself, or in a folder model.safetensors, its index, or pytorch_model.bin.
/// Errors: a folder without any of them.
std::filesystem::path weights_file(const std::filesystem::path& path);

/// `sizes`, as far as a config.json beside the weights (a file or folder) says otherwise: width, depth, heads and the like, and
/// with `with_dropout` the dropout. Vocabulary and classes stay. Errors: it is no JSON; another kind of model than BERT;
/// two rates of dropout, of which Weft's BERT has one.
nn::BertOptions configured(const std::filesystem::path& weights, nn::BertOptions sizes, bool with_dropout);

/// Copies Hugging Face's weights into the model. The classifier may be missing (it keeps its own start), heads of
/// pre-training are left out, and the encoder may stand without its `bert.`. Returns whether the classifier was there.
/// Errors: other names or shapes that do not fit.
bool load_bert(nn::Bert& model, const std::filesystem::path& path);

/// Writes FOLDER/model.safetensors under Hugging Face's names, config.json, and the tokenizer's vocab.txt,
/// tokenizer_config.json and special_tokens_map.json. `state`: the model's.
void save_bert(const std::filesystem::path& folder, const StateDict& state, const nn::BertOptions& options,
               const data::WordPiece& pieces);

/// FOLDER/ema.safetensors: the averages of the weights under the same names. `averages`: Ema's state.
void save_averages(const std::filesystem::path& folder, const StateDict& averages);
/// Errors: there is no such file: the checkpoint was made without averages.
StateDict load_averages(const std::filesystem::path& folder, int64_t updates);

}  // namespace weft::finetune
