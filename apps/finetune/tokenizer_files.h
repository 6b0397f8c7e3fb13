// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "data/text/encoding.h"
#include "nn/models/bert.h"

namespace weft::finetune {

/// A tokenizer and the files that describe it.
struct Tokenizer {
  std::unique_ptr<data::TextEncoder> encoder;
  int64_t most = 0;                          ///< model_max_length, tokens of the longest text; 0: the files do not say
  std::string configuration = {};            ///< tokenizer_config.json, with all that the encoder follows
  std::map<std::string, std::string> files;  ///< content by name, to be written unchanged: tokenizer.json
};

/// Reads a folder as Hugging Face's libraries write it, old and new: vocab.txt or tokenizer.json (for RoBERTa
/// vocab.json and merges.txt, or tokenizer.json, which may hold a unigram model). tokenizer_config.json,
/// special_tokens_map.json and added_tokens.json are optional. `path` may also be one of the first. Errors: no
/// vocabulary is there; the files contradict each other; they ask for what Weft's tokenizers do not do, which is named.
Tokenizer read_tokenizer(const std::filesystem::path& path, nn::BertKind kind);

/// The one of a vocabulary that Weft made.
Tokenizer tokenizer_of(std::unique_ptr<data::TextEncoder> encoder, nn::BertKind kind);

/// Writes all files of a tokenizer. `most`: tokens of the model's longest text.
void save_tokenizer(const std::filesystem::path& folder, const Tokenizer& tokenizer, int64_t most);

}  // namespace weft::finetune
