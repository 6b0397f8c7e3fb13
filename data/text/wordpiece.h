// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <unordered_map>

#include "data/text/encoding.h"

namespace weft::data {

/// Words cut into the longest pieces of a vocabulary, from the left (Wu et al. 2016; Devlin et al. 2018): "unaffable"
/// may be `un ##aff ##able`. A word that cannot be cut so, or of more than 100 characters, is [UNK].
class WordPiece final : public TextEncoder {
 public:
  /// Token i of the vocabulary has the id i. Errors: no [UNK], [CLS], [SEP] or [PAD]; a token twice.
  explicit WordPiece(std::vector<std::string> vocabulary, bool lowercase = true);
  /// Reads `vocab.txt`, one token a line. Errors: it cannot be read; as above, with the line.
  static WordPiece from_file(const std::filesystem::path& path, bool lowercase = true);

  int64_t size() const override { return static_cast<int64_t>(vocabulary_.size()); }
  const std::vector<std::string>& vocabulary() const { return vocabulary_; }
  /// Errors: an id outside of the vocabulary.
  const std::string& token(int64_t id) const;
  int64_t padding_id() const override { return padding_; }
  std::vector<int64_t> ids_of(std::string_view text) const override;
  /// Writes FOLDER/vocab.txt.
  void save(const std::filesystem::path& folder) const override;

  /// The pieces of a text. A special token written out in it ("[SEP]") is that token.
  std::vector<std::string> pieces(std::string_view text) const;

 private:
  int64_t require(std::string_view token) const;
  void append_ids(std::string_view text, std::vector<int64_t>& ids) const;
  void append_word(const std::string& word, std::vector<int64_t>& ids) const;
  Frame frame() const override { return {.first = first_, .separator = separator_}; }

  std::vector<std::string> vocabulary_;
  std::unordered_map<std::string, int64_t> ids_;
  bool lowercase_;
  int64_t unknown_ = 0, first_ = 0, separator_ = 0, padding_ = 0;
};

/// A vocabulary for texts of which no published one is at hand: the special tokens, every character that occurs (alone
/// and as a continuation), then the most frequent words, `size` tokens at most. The same for the same texts.
std::vector<std::string> make_vocabulary(const std::vector<std::string>& texts, int64_t size, bool lowercase = true);

/// The characters (code points) of a word of split_words(), each as UTF-8.
std::vector<std::string_view> characters_of(std::string_view word);

}  // namespace weft::data
