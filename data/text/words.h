// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft::data {

/// The normalisation of BERT's tokenizer before words are separated.
struct WordOptions {
  bool lowercase = true;
  std::optional<bool> strip_accents = {};  ///< none: as lowercase
  bool parts_ideographs = true;            ///< the sides of every CJK ideograph part words
  bool cleans_text = true;                 ///< control characters, private ones and invalid bytes go
};

/// A UTF-8 text as the rules of google-research/bert's BasicTokenizer and of Hugging Face's BertNormalizer change it:
/// "Café" is "cafe", "a≠b" is "a=b", white space is ' '. Errors: built without utf8proc.
std::string normalized_text(std::string_view text, const WordOptions& options = {});

/// The normalised text as BERT's words (Devlin et al. 2018): white space parts them, every punctuation mark is one.
std::vector<std::string> split_words(std::string_view text, const WordOptions& options = {});
/// Splits a text that is normalised already.
std::vector<std::string> split_normalized(std::string_view text);

/// Whether the text begins (ends) with a character of a word: a letter, digit, mark or connector, as in the `\w` of
/// Unicode's regular expressions. An empty text does not.
bool begins_in_word(std::string_view text);
bool ends_in_word(std::string_view text);
/// Bytes of white space at the beginning (end) of a text.
size_t leading_space(std::string_view text);
size_t trailing_space(std::string_view text);

/// A UTF-8 text as GPT-2's pieces (Radford et al. 2019; the pattern of openai/gpt-2's encoder.py): the endings 's 't
/// 're 've 'm 'll 'd; letters, digits or other marks in a row, each with at most one leading space; white space. One
/// after the other they are the whole text; an invalid byte is a mark. Errors: built without utf8proc.
std::vector<std::string_view> split_pieces(std::string_view text);

/// How a byte-level tokenizer parts a text before it merges bytes.
enum class PiecePattern : uint8_t {
  gpt2,    ///< the pieces above
  llama3,  ///< endings in any case; one mark or space ahead of letters; three digits at most; line ends of their own
  qwen2,   ///< as Llama-3's, but each digit alone
  tekken,  ///< Mistral-Nemo: capitals begin a piece of letters and marks; digits alone; `/` goes with the marks before
  digits,  ///< SmolLM: digits alone, GPT-2's pieces between them
};
/// As above by another pattern.
std::vector<std::string_view> split_pieces(std::string_view text, PiecePattern pattern);

/// The text in Unicode's normal form C (KC: `compatible_text`); as it is where its UTF-8 is invalid. Errors: built
/// without utf8proc.
std::string composed_text(std::string_view text);
std::string compatible_text(std::string_view text);

/// The only difference between two similar names: `case`, or `how accents are stored (NFC, NFD)`, which utf8proc
/// tells. "" where they differ in more, or not at all.
std::string sole_difference(std::string_view a, std::string_view b);

/// The characters as readers see them: a letter with its marks, or an invalid byte. Together they are the text. Errors:
/// built without utf8proc.
std::vector<std::string_view> grapheme_clusters(std::string_view text);

}  // namespace weft::data
