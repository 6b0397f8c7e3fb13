// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/state_dict.h"
#include "data/text/byte_pair.h"
#include "nn/models/decoder.h"
#include "nn/models/gpt.h"

namespace weft::gpt {

/// The folder of a model's files that `path` means: itself, or `model` in the folder of a run of train_gpt.
std::filesystem::path model_folder(const std::filesystem::path& path);

/// The entries of Hugging Face's config.json and generation_config.json, or of nanoGPT's checkpoint.
struct GptConfig {
  nn::GptOptions sizes{};
  std::optional<nn::DecoderOptions> decoder{};  ///< in place of `sizes`
  double dropout = 0;                           ///< the largest of the file's; the sizes have none
  std::optional<int64_t> begin{};               ///< bos_token_id
  std::optional<std::vector<int64_t>> end{};    ///< eos_token_id; none: the files do not say
  std::string generation{};                     ///< the text of generation_config.json; "": there is none
  std::optional<nn::LoraOptions> lora{};        ///< adapters of a decoder
  std::string decoder_text{};                   ///< the text of a decoder's config.json; "": it was not read

  /// Calls f with the sizes of the model, either kind's, and returns its result.
  auto with_sizes(auto&& f) const { return decoder ? f(*decoder) : f(sizes); }
  auto with_sizes(auto&& f) { return decoder ? f(*decoder) : f(sizes); }
};

/// `path`: the folder of config.json, or nanoGPT's checkpoint (a file with `model_args`). Errors: it cannot be read;
/// another kind of model, or one of a form that nn::Gpt and nn::Decoder do not have, by the entry.
GptConfig read_gpt_config(const std::filesystem::path& path);

/// The tokenizer of --tokenizer, or, where that is auto, of the weights' folder. Errors: no folder; more tokens than
/// the model has.
data::BytePair read_tokenizer(const std::string& flag, const std::filesystem::path& weights);
void require_room(const data::BytePair& tokens, const GptConfig& config);

/// The sizes of a new model: by its name (nn::gpt_names(), nn::decoder_names()), or those of a folder with config.json.
/// Errors: neither.
GptConfig named_config(const std::string& model);
std::shared_ptr<nn::LanguageModel> make_language_model(const GptConfig& config);

/// Copies weights into the model: of a file, or of a folder with model.safetensors or pytorch_model.bin or an index.
/// Names are Hugging Face's or nanoGPT's, whose matrices lie the other way. nanoGPT's models without biases get biases
/// of 0. `key`: the dict of a PyTorch file; "": found, of nanoGPT's `model`. Errors: other names or shapes; an output
/// layer that is not the token embedding where that is tied.
void load_gpt(nn::LanguageModel& model, const std::filesystem::path& path, const std::string& key = "");

/// Writes FOLDER/model.safetensors (above 5 GB several, with an index) under the names of Hugging Face's models. There
/// are config.json, too, generation_config.json if it was read, and the tokenizer's files. `state`: the model's;
/// its adapters are merged into the weights, and written alone into the folder `adapter` beside, as PEFT does.
void save_gpt(const std::filesystem::path& folder, StateDict state, const GptConfig& config,
              const data::BytePair& tokens);

}  // namespace weft::gpt
