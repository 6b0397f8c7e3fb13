// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace weft::data {

/// Where a tokenizer of sentencepiece puts a `▁` before a text. In the text `▁` stands for each space.
enum class Metaspace : uint8_t {
  absent,   ///< the tokenizer is another one
  prepend,  ///< before the text and after each added token, as Llama-2's normalizer Prepend
  always,   ///< as `prepend`, but not ahead of a space
  first,    ///< at the begin of the text alone, and not ahead of a space
  never,
};
/// A `prepend_scheme` of tokenizer.json: always, first or never. Errors: another one.
Metaspace metaspace_named(const std::string& scheme);

/// The text with `to` for each `from`.
std::string replaced_in(std::string_view text, std::string_view from, std::string_view to);

/// The token of a byte that no other token has: `<0x0A>`.
std::string byte_token(uint8_t byte);
/// Appends the text of a token: ' ' for each `space`, if it is not empty, and with `bytes` the byte of a byte's token.
void append_token(std::string& text, std::string_view token, std::string_view space, bool bytes);

}  // namespace weft::data
