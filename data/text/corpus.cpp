// SPDX-License-Identifier: Apache-2.0
#include "data/text/corpus.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/text.h"
#include "core/utf8.h"
#include "io/json.h"
#include "kernels/error.h"

namespace weft::data {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr uint32_t kLlmC = 20240520;  // the first number of llm.c's files of tokens; its other files have other dates
constexpr size_t kLlmCHeader = 1024;

template <class Number>
Number number_at(std::string_view bytes, size_t index) {
  Number number{};
  std::memcpy(&number, bytes.data() + index * sizeof(Number), sizeof(Number));
  return number;
}

bool begins_as_llm_c(std::string_view bytes) {
  return bytes.size() >= 4 && number_at<uint32_t>(bytes, 0) / 1000 == kLlmC / 1000;
}

struct FileFormat {
  std::string_view begin;
  const char *name, *hint;
};
using namespace std::string_view_literals;
constexpr const char* kUnpack = "Unpack it first";
constexpr const char* kWriteTexts = "Write its texts to a file first, with <|endoftext|> between them";
constexpr const char* kConvert = "`iconv -f UTF-16 -t UTF-8 FILE > TEXT` converts it";
constexpr FileFormat kFileFormats[] = {
    {"\x1F\x8B\x08"sv, "gzip", kUnpack},
    {"PK\x03\x04"sv, "a zip archive", kUnpack},
    {"\x28\xB5\x2F\xFD"sv, "zstd", kUnpack},
    {"\xFD"
     "7zXZ\0"sv,
     "xz", kUnpack},
    {"BZh"sv, "bzip2", kUnpack},
    {"PAR1"sv, "Parquet", kWriteTexts},
    {"ARROW1"sv, "Arrow", kWriteTexts},
    {"\xFF\xFF\xFF\xFF"sv, "an Arrow stream", kWriteTexts},
    {"\x93NUMPY"sv, "a NumPy array", "`array.astype('uint16').tofile('train.bin')` writes its tokens as numbers alone"},
    {"\x89HDF"sv, "HDF5", kWriteTexts},
    {"\x80\x04\x95"sv, "a pickle", kWriteTexts},
    {"%PDF-"sv, "PDF", kWriteTexts},
    {"\xFF\xFE\0\0"sv, "UTF-32", "`iconv -f UTF-32 -t UTF-8 FILE > TEXT` converts it"},
    {"\0\0\xFE\xFF"sv, "UTF-32", "`iconv -f UTF-32 -t UTF-8 FILE > TEXT` converts it"},
    {"\xFF\xFE"sv, "UTF-16", kConvert},
    {"\xFE\xFF"sv, "UTF-16", kConvert},
};

/// Where UTF-8 ends: at the end, or at a byte that begins no character, or at a byte 0.
size_t end_of_utf8(std::string_view bytes) {
  uint32_t number = 0;
  size_t at = 0;
  for (size_t length = 0; at < bytes.size(); at += length) {
    length = decode_utf8(bytes, at, number);
    if (length == 0 || number == 0) break;
  }
  return at;
}

}  // namespace

bool holds_tokens(const std::filesystem::path& path, std::string_view bytes) {
  if (begins_as_llm_c(bytes)) return true;
  const bool text =
      bytes.find_first_of("\1\2\3\4\5\6\7\b") == std::string_view::npos && end_of_utf8(bytes) == bytes.size();
  return path.extension() == ".bin" && !text;
}

TokenNumbers tokens_of(const std::shared_ptr<const std::string>& file, int64_t vocabulary, const std::string& what) {
  std::string_view bytes = *file;
  for (const FileFormat& format : kFileFormats)
    WEFT_CHECK(format.begin.size() < 3 || !bytes.starts_with(format.begin), what,
               ": expected the numbers of tokens, got ", format.name);
  int width = 2;
  if (begins_as_llm_c(bytes)) {
    const auto magic = number_at<uint32_t>(bytes, 0);
    WEFT_CHECK(magic == kLlmC && bytes.size() >= kLlmCHeader, what, ": expected llm.c's tokens (", kLlmC,
               " and a header of ", kLlmCHeader, " bytes), got ", magic, " and ", bytes.size(), " bytes");
    const auto version = number_at<uint32_t>(bytes, 1), count = number_at<uint32_t>(bytes, 2);
    WEFT_CHECK(version == 1 || version == 7, what, ": expected version 1 or 7 of llm.c's tokens, got ", version);
    width = version == 1 ? 2 : 4;
    bytes.remove_prefix(kLlmCHeader);
    WEFT_CHECK(bytes.size() == uint64_t{count} * static_cast<unsigned>(width), what, ": expected ", count,
               " tokens of ", width, " bytes after llm.c's header, got ", bytes.size(), " bytes");
  } else {
    WEFT_CHECK(!bytes.empty() && bytes.size() % 2 == 0, what, ": expected tokens of 2 or 4 bytes, got ", bytes.size(),
               " bytes");
    const auto fit = [&](uint32_t token) { return token < vocabulary; };
    bool wide = bytes.size() % 4 == 0;
    for (size_t i = 0; wide && i < bytes.size() / 4; ++i) wide = fit(number_at<uint32_t>(bytes, i));
    bool longer = wide && bytes.size() % 8 == 0;  // the upper halves of 64-bit numbers are 0
    for (size_t i = 1; longer && i < bytes.size() / 4; i += 2) longer = number_at<uint32_t>(bytes, i) == 0;
    WEFT_CHECK(!longer, what, ": expected tokens of 2 or 4 bytes, got 8 bytes for each");
    width = wide ? 4 : 2;
  }
  const TokenNumbers tokens(file, bytes.data(), static_cast<int64_t>(bytes.size()) / width, width);
  for (int64_t i = 0; i < tokens.size(); ++i)
    WEFT_CHECK(tokens[i] < vocabulary, what, ": expected tokens below the ", vocabulary, " of the tokenizer, got ",
               tokens[i], " at position ", i);
  return tokens;
}

std::optional<std::vector<std::string>> json_texts(std::string_view bytes, const std::string& what) {
  std::vector<std::string> texts;
  if (bytes.starts_with("\xEF\xBB\xBF")) bytes.remove_prefix(3);
  for (int64_t line = 1; !bytes.empty(); ++line) {
    const std::string_view row = bytes.substr(0, bytes.find('\n'));
    bytes.remove_prefix(std::min(row.size() + 1, bytes.size()));
    if (row.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const auto object = row[row.find_first_not_of(" \t\r")] == '{'
                            ? nlohmann::json::parse(standard_json(row), nullptr, /*allow_exceptions=*/false)
                            : nlohmann::json();
    const bool fits = object.is_object() && object.contains("text") && object["text"].is_string();
    if (!fits && texts.empty()) return std::nullopt;
    WEFT_CHECK(fits, what, ": expected JSON lines of objects with a \"text\", got another line ", line, ": ",
               printable(row, 80));
    texts.push_back(object["text"].get<std::string>());
  }
  if (texts.empty()) return std::nullopt;
  return texts;
}

std::string_view text_of(std::string_view bytes, const std::string& what) {
  for (const FileFormat& format : kFileFormats)
    WEFT_CHECK(!bytes.starts_with(format.begin), what, ": expected a UTF-8 text, got ", format.name, ". ", format.hint);
  if (bytes.starts_with("\xEF\xBB\xBF")) bytes.remove_prefix(3);
  WEFT_CHECK(!bytes.empty(), what, ": expected a text, got an empty one");
  const size_t end = end_of_utf8(bytes);
  if (end == bytes.size()) return bytes;
  const auto line = std::count(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(end), '\n') + 1;
  const int byte = static_cast<uint8_t>(bytes[end]);
  fail(what, ": expected a UTF-8 text, got the byte ", byte, " at position ", end, " (line ", line, ")",
       byte == 0 ? ". A file of tokens' numbers ends in .bin; UTF-16 begins with a byte order mark"
                 : ", where no character begins. `iconv -f LATIN1 -t UTF-8 FILE > TEXT` converts Latin-1");
}

}  // namespace weft::data
