// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/text/metaspace.h"

namespace weft::data {

/// A token that is searched in the text itself, before the model cuts the rest.
struct AddedToken {
  std::string content;
  int64_t id = -1;  ///< -1: the file does not say
  bool special = false;
  bool normalized = false;   ///< searched in the normalised text: where that is lower case, so is the token
  bool lstrip = false;       ///< white space before it goes
  bool rstrip = false;       ///< white space after it goes
  bool single_word = false;  ///< not inside of a word
};

/// Hugging Face's `tokenizer.json` (tokenizers 0.9 and later), as far as WordPiece and byte pairs need it.
struct TokenizerJson {
  std::string type;                                         ///< the model's type: "WordPiece" or "BPE"
  std::vector<std::string> vocabulary;                      ///< tokens as written, indexed by id; empty: no such id
  std::vector<std::pair<std::string, std::string>> merges;  ///< as written, in their order
  std::vector<AddedToken> added;                            ///< in the order of ids
  std::string unknown;                                      ///< the model's unk_token; "": none
  std::string continuation;                                 ///< continuing_subword_prefix: "##"; "": none
  std::string word_end;                                     ///< end_of_word_suffix: "</w>"; "": none
  int64_t longest_word = 0;                                 ///< max_input_chars_per_word; 0: the file does not say

  /// Types in their order, a Sequence as its elements: "BertNormalizer", "NFC"; "ByteLevel", "BertPreTokenizer".
  std::vector<std::string> normalizers, pre_tokenizers;
  /// Added before and after a text by the post-processor, where it does as BERT's and RoBERTa's do; "": it does not.
  std::string first, separator;
  bool lowercase = false;             ///< BertNormalizer's, or a normaliser Lowercase
  std::optional<bool> strip_accents;  ///< BertNormalizer's, or a normaliser StripAccents; none: as `lowercase`
  bool parts_ideographs = true;       ///< BertNormalizer's handle_chinese_chars
  bool cleans_text = true;            ///< BertNormalizer's clean_text
  bool adds_prefix_space = false;     ///< ByteLevel's add_prefix_space
  bool uses_pattern = true;           ///< ByteLevel's use_regex: GPT-2's pattern parts the text
  std::string pattern;                ///< matches of a Split's pattern are parts; "": there is none
  bool parts_digits = false;          ///< Digits' individual_digits
  std::string begin;                  ///< the token that the post-processor puts before a text alone, as Llama-3's
  bool is_other_template = false;     ///< the post-processor puts other tokens around a text
  bool byte_fallback = false;         ///< the BPE model's
  bool ignores_merges = false;        ///< the BPE model's ignore_merges: a piece that is a token is not merged
  Metaspace metaspace = Metaspace::absent;  ///< Llama-2's normalizer, or a pre-tokenizer Metaspace without `split`
  bool decodes_metaspace =
      false;                  ///< the decoders are Replace of `▁`, ByteFallback, Fuse and, with strips_space, Strip
  bool strips_space = false;  ///< the decoder takes away the first space
  double dropout = 0;         ///< the BPE model's: share of merges left out at random
};

/// Errors: it cannot be read, is no JSON, or lacks an entry; a model of another type than `type`, which is named; an id
/// twice; a merge that is not two tokens.
TokenizerJson read_tokenizer_json(const std::filesystem::path& path, const std::string& type);

}  // namespace weft::data
