// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <memory>
#include <string>

#include "core/state_dict.h"
#include "data/text/byte_pair.h"
#include "data/text/wordpiece.h"
#include "nn/models/bert.h"

namespace weft::finetune {

/// The weights that --weights auto means: for bert_base the folder bert-base-uncased of the working folder (or
/// bert_base_uncased, as tools/fetch_weights calls it), for roberta_base roberta-base, for distilbert_base
/// distilbert-base-uncased, for any other model `random`. Errors: neither folder is there.
std::string standard_weights(const std::string& model);

/// The map of names (io/weights/name_map.h) from Hugging Face's files of this kind; its inverse begins with `to_`.
std::string hf_names(nn::BertKind kind);

/// The file of weights that `path` means: itself, or in a folder model.safetensors, its index, or pytorch_model.bin.
/// Errors: a folder without any of them.
std::filesystem::path weights_file(const std::filesystem::path& path);

/// `sizes`, as far as a config.json beside the weights (a file or folder) says otherwise: the kind of model, width,
/// depth, heads and the like, and with `with_dropout` the dropout. Vocabulary and classes stay. Errors: it is no JSON;
/// a kind of model that is none of BertKind; two rates of dropout, of which Weft's BERT has one.
nn::BertOptions configured(const std::filesystem::path& weights, nn::BertOptions sizes, bool with_dropout);

/// Copies Hugging Face's weights into the model. The classifier may be missing (it keeps its own start), heads of
/// pre-training are left out, and the encoder may stand without its `bert.`. Returns whether the classifier was there.
/// Errors: other names or shapes that do not fit.
bool load_bert(nn::Bert& model, const std::filesystem::path& path);

/// Writes FOLDER/model.safetensors under Hugging Face's names, config.json, and the tokenizer's files: vocab.txt, or
/// vocab.json and merges.txt; tokenizer_config.json, special_tokens_map.json. `state`: the model's.
void save_bert(const std::filesystem::path& folder, const StateDict& state, const nn::BertOptions& options,
               const data::TextEncoder& tokens);

/// The vocabulary of this kind of model: a vocab.txt, or the folder of one; of RoBERTa the folder of vocab.json and
/// merges.txt.
std::unique_ptr<data::TextEncoder> read_tokens(const std::filesystem::path& path, nn::BertKind kind);

/// FOLDER/ema.safetensors: the averages of the weights under the same names. `averages`: Ema's state.
void save_averages(const std::filesystem::path& folder, const StateDict& averages, nn::BertKind kind);
/// Errors: there is no such file: the checkpoint was made without averages.
StateDict load_averages(const std::filesystem::path& folder, int64_t updates, nn::BertKind kind);

}  // namespace weft::finetune
