// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/text/token_numbers.h"

namespace weft::data {

/// Whether a file for a language model holds the numbers of tokens and no text: its name ends in `.bin`, or it begins
/// as llm.c's files do.
bool holds_tokens(const std::filesystem::path& path, std::string_view bytes);

/// The tokens in the bytes of such a file, which it shares: llm.c's (1024 bytes of header: the number 20240520, a
/// version, the count; version 1 has 16 bits for a token, version 7 has 32), or numbers alone as nanoGPT writes them.
/// These have 32 bits if all are then below `vocabulary`, else 16. `what` begins the errors: no whole numbers,
/// another version or count, a token that is not below `vocabulary`, with its position.
TokenNumbers tokens_of(const std::shared_ptr<const std::string>& file, int64_t vocabulary, const std::string& what);

/// The texts of JSON lines, objects with `text`; nothing if the first line is no such object. `what` begins the errors:
/// a later line that is none, with its number.
std::optional<std::vector<std::string>> json_texts(std::string_view bytes, const std::string& what);

/// The UTF-8 text of a file's bytes, without a byte order mark. `what` begins the errors: the bytes are empty, no UTF-8
/// (with the place), or another kind of file, which is named: gzip, zip, Parquet, Arrow, NumPy, UTF-16, ….
std::string_view text_of(std::string_view bytes, const std::string& what);

}  // namespace weft::data
