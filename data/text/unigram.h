// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/text/added_tokens.h"
#include "data/text/character_map.h"
#include "data/text/encoding.h"
#include "data/text/metaspace.h"

namespace weft::data {

/// SentencePiece's unigram model (Kudo 2018) as Hugging Face's tokenizer.json describes it, such as XLM-RoBERTa's and
/// T5's: the text is normalised, cut into words that begin with `▁` (Metaspace), and each word into the tokens whose
/// scores have the largest sum (Viterbi). Characters without a token are unknown, and neighbours of them are one, or
/// they are bytes (`byte_fallback`).
class Unigram final : public TextEncoder {
 public:
  /// Normalizers Precompiled, NFC, NFKC, Lowercase, Strip, Prepend and Replace; pre-tokenizers WhitespaceSplit and
  /// Metaspace. Errors: it cannot be read; another model or part, by its name; scores that are no numbers.
  static Unigram from_tokenizer_json(const std::filesystem::path& path);

  int64_t size() const override { return static_cast<int64_t>(tokens_.size()); }
  int64_t padding_id() const override { return find("<pad>"); }
  std::vector<int64_t> ids_of(std::string_view text) const override;
  std::string token_text(int64_t id) const override;
  void save(const std::filesystem::path& folder) const override;

  /// The id of a token as the file writes it; -1: there is none.
  int64_t find(std::string_view token) const;
  /// The text of the tokens: `▁` is a space, but for the first. Errors: an id of no token.
  std::string decode(std::span<const int64_t> ids) const;

 private:
  struct Entry {
    int64_t id;
    double score;
  };
  struct Step {
    enum Kind : uint8_t { map, compose, compose_compatible, lowercase, strip, prepend, replace, merge_spaces } kind;
    std::string from{}, to{};
    bool left = false, right = false;
  };
  Unigram() = default;
  Frame frame() const override;
  std::string normalized(std::string_view text) const;
  void append_words(std::string_view text, bool begins, std::vector<int64_t>& ids) const;
  void append_ids(std::string_view word, std::vector<int64_t>& ids) const;

  std::vector<std::string> tokens_;  // as written, by id
  std::map<std::string, Entry, std::less<>> entries_;
  size_t longest_ = 0;  // bytes of a token
  double unknown_score_ = 0;
  int64_t unknown_ = -1;
  bool byte_fallback_ = false, splits_white_space_ = false, cuts_words_ = true;
  std::string space_;  // Metaspace's replacement; empty: spaces stay
  Metaspace prefix_ = Metaspace::always;
  std::vector<Step> steps_;
  CharacterMap characters_;
  AddedTokens added_;
  std::string file_;  // save() writes it
};

}  // namespace weft::data
