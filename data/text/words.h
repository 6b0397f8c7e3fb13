// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace weft::data {

/// A UTF-8 text as BERT's words (Devlin et al. 2018; the rules of google-research/bert's BasicTokenizer): control
/// characters, private ones and invalid bytes are left out, white space and the sides of every CJK ideograph part
/// words, every punctuation mark is a word. With `lowercase`, accents go and letters become small first ("Café" is
/// "cafe", "a≠b" is "a = b"). Errors: built without utf8proc.
std::vector<std::string> split_words(std::string_view text, bool lowercase);

/// A UTF-8 text as GPT-2's pieces (Radford et al. 2019; the pattern of openai/gpt-2's encoder.py): the endings 's 't
/// 're 've 'm 'll 'd; letters, digits or other marks in a row, each with one space ahead where there is one; white
/// space. One after the other they are the whole text; an invalid byte is a mark. Errors: built without utf8proc.
std::vector<std::string_view> split_pieces(std::string_view text);

/// Bytes of the white space (Unicode's property White_Space) at the beginning and at the end of a UTF-8 text. Errors:
/// built without utf8proc.
size_t leading_space(std::string_view text);
size_t trailing_space(std::string_view text);

}  // namespace weft::data
