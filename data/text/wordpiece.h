// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <unordered_map>

#include "data/text/added_tokens.h"
#include "data/text/encoding.h"
#include "data/text/words.h"

namespace weft::data {

struct WordPieceOptions {  // `{}`: g++ then allows designated initialisers of some members only
  WordOptions words{};
  std::string unknown{"[UNK]"}, first{"[CLS]"}, separator{"[SEP]"}, padding{"[PAD]"}, mask{"[MASK]"};
  std::string continuation{"##"};   ///< before a piece that does not begin its word
  int64_t longest_word = 100;       ///< characters of a word that is not unknown
  std::vector<AddedToken> added{};  ///< more tokens than the five above, or the same with other flags
  bool marks_second = true;         ///< Encoding::token_types
  bool cuts_front = false;          ///< cuts the front of texts that are too long
};

/// Words cut into the longest pieces of a vocabulary, from the left (Wu et al. 2016; Devlin et al. 2018): "unaffable"
/// may be `un ##aff ##able`. A word that cannot be cut so, or that is too long, is unknown.
class WordPiece final : public TextEncoder {
 public:
  /// Token i of the vocabulary has the id i; an empty one is none. Errors: the token for unknown words, the first one,
  /// the separator or padding is missing; a token twice; an added token with the id of another one.
  explicit WordPiece(std::vector<std::string> vocabulary, const WordPieceOptions& options = {});
  /// Reads `vocab.txt`, one token a line. Errors: it cannot be read; as above, with the line.
  static WordPiece from_file(const std::filesystem::path& path, const WordPieceOptions& options = {});

  int64_t size() const override { return static_cast<int64_t>(vocabulary_.size()); }
  const std::vector<std::string>& vocabulary() const { return vocabulary_; }
  const WordPieceOptions& options() const { return options_; }
  /// Errors: an id outside of the vocabulary.
  const std::string& token(int64_t id) const;
  std::string token_text(int64_t id) const override { return token(id); }
  int64_t padding_id() const override { return padding_; }
  std::vector<int64_t> ids_of(std::string_view text) const override;
  /// Writes FOLDER/vocab.txt. Ids of no token and of tokens that only `added` names are no lines of it.
  void save(const std::filesystem::path& folder) const override;

  /// The pieces of a text. A special token written out in it ("[SEP]") is that token.
  std::vector<std::string> pieces(std::string_view text) const;

 private:
  int64_t require(std::string_view token) const;
  void append_word(const std::string& word, std::vector<int64_t>& ids) const;
  Frame frame() const override {
    return {.first = first_,
            .separator = separator_,
            .marks_second = options_.marks_second,
            .cuts_front = options_.cuts_front};
  }

  WordPieceOptions options_;
  std::vector<std::string> vocabulary_;  // with added tokens
  size_t listed_;                        // size of the vocabulary alone
  std::unordered_map<std::string, int64_t> ids_;
  AddedTokens added_;
  int64_t unknown_ = 0, first_ = 0, separator_ = 0, padding_ = 0;
};

/// The tokens of a `vocab.txt`, by line.
std::vector<std::string> read_vocabulary(const std::filesystem::path& path);

/// A vocabulary for texts without a published vocabulary: the special tokens, every character that occurs (alone
/// and as a continuation), then the most frequent words, `size` tokens at most. Equal texts give equal vocabularies.
std::vector<std::string> make_vocabulary(const std::vector<std::string>& texts, int64_t size);

/// The characters (code points) of a word of split_words(), each as UTF-8.
std::vector<std::string_view> characters_of(std::string_view word);

}  // namespace weft::data
