// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>

#include "core/state_dict.h"
#include "data/text/byte_pair.h"
#include "nn/models/gpt.h"

namespace weft::gpt {

/// The folder of a model's files that `path` means: itself, or `model` in the folder of a run of train_gpt.
std::filesystem::path model_folder(const std::filesystem::path& path);

/// The sizes in FOLDER/config.json of Hugging Face's GPT-2. Errors: it cannot be read; another kind of model, or one of
/// a form that nn::Gpt does not have, by the entry.
nn::GptOptions read_gpt_options(const std::filesystem::path& folder);

/// Copies Hugging Face's weights into the model: a file, or a folder with model.safetensors, its index, or
/// pytorch_model.bin. Errors: other names or shapes; an output layer that is not the token embedding.
void load_gpt(nn::Gpt& model, const std::filesystem::path& path);

/// Writes FOLDER/model.safetensors under the names of Hugging Face's GPT2LMHeadModel, config.json, vocab.json,
/// merges.txt. `state`: the model's.
void save_gpt(const std::filesystem::path& folder, StateDict state, const nn::GptOptions& options,
              const data::BytePair& tokens);

}  // namespace weft::gpt
