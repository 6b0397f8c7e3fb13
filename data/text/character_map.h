// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft::data {

/// SentencePiece's compiled rules of normalisation (`precompiled_charsmap`): a trie of byte strings as a double array
/// (Yata's darts-clone), whose values are places in a list of replacements.
class CharacterMap {
 public:
  CharacterMap() = default;
  /// `base64` as tokenizer.json writes it: the trie's size in bytes (32 bits, little endian), the trie, and the
  /// replacements, each with a zero at its end. Errors: another form.
  explicit CharacterMap(std::string_view base64);

  /// The text with its characters replaced. As in Hugging Face's tokenizers, a grapheme cluster of less than six bytes
  /// counts as one character. Errors: built without utf8proc.
  std::string apply(std::string_view text) const;

 private:
  /// The replacement of the shortest entry with which the text begins; null: there is none.
  const char* find(std::string_view text) const;

  std::vector<uint32_t> units_;
  std::string replacements_;
};

}  // namespace weft::data
