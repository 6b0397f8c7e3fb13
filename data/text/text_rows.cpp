// SPDX-License-Identifier: Apache-2.0
#include "data/text/text_rows.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/text.h"
#include "io/file_kind.h"
#include "io/file_reader.h"
#include "io/json.h"
#include "kernels/error.h"

namespace weft::data {
namespace {

using Cells = std::vector<std::optional<std::string>>;

std::string without_blanks(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r"), end = text.find_last_not_of(" \t\r");
  return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
}

/// Bytes of the UTF-8 character at the beginning of the text; 0: there is none.
size_t character_bytes(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : uint8_t{0}; };
  const uint8_t first = byte(0), second = byte(1);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  // Neither too long a form, nor half of a surrogate pair, nor above U+10FFFF.
  const uint8_t least = first == 0xE0   ? 0xA0
                        : first == 0xF0 ? 0x90
                                        : 0x80,
                most = first == 0xED   ? 0x9F
                       : first == 0xF4 ? 0x8F
                                       : 0xBF;
  if (first < 0xC2 || first > 0xF4 || second < least || second > most) return 0;
  for (size_t i = 2; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  return length;
}

void check_utf8(std::string_view text, const std::filesystem::path& path) {
  WEFT_CHECK(!text.starts_with("\xFF\xFE") && !text.starts_with("\xFE\xFF"), "expected UTF-8, got UTF-16");
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = character_bytes(text.substr(at));
    if (bytes == 0) refuse_known(FileReader(path, "text table"), "a text");  // a packed file, or a spreadsheet's
    if (bytes == 0)
      fail("line ", 1 + std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(at), '\n'),
           ": expected UTF-8, got '", printable(text.substr(at, 1)),
           "'. Is it Latin-1? iconv -f latin1 -t utf8 converts it");
    at += bytes;
  }
}

/// Cuts the next row from `text` and counts its lines. `quoted`: cells may be between quotation marks.
Cells next_row(std::string_view& text, char separator, bool quoted, int64_t& line) {
  Cells cells;
  std::string cell;
  bool inside = false, closed = false;  // state of a quotation
  const int64_t begin = line;
  size_t at = 0;
  for (; at < text.size() && (inside || text[at] != '\n'); ++at) {
    const char c = text[at];
    if (c == '\n') ++line;
    if (inside && c == '"' && text.substr(at + 1).starts_with('"')) {
      cell += text[++at];
    } else if (inside && c == '"') {
      inside = false, closed = true;
    } else if (!inside && c == separator) {
      cells.emplace_back(std::move(cell));
      cell.clear();
      closed = false;
    } else if (!inside && quoted && c == '"' && cell.empty() && !closed) {
      inside = true;
    } else {
      WEFT_CHECK(!closed || c == '\r' || c == ' ', "line ", begin, ": expected a separator after a quotation, got '",
                 printable(text.substr(at, 1)), "'. A quotation mark inside of one is written twice");
      if (!closed) cell += c;
    }
  }
  WEFT_CHECK(!inside, "line ", begin, ": a quotation that begins in this row does not end");
  if (!quoted || !closed)
    if (cell.ends_with('\r')) cell.pop_back();
  cells.emplace_back(std::move(cell));
  text.remove_prefix(std::min(at + 1, text.size()));
  ++line;
  return cells;
}

bool is_cola(const Cells& cells) {
  return cells.size() == 4 && (cells[1] == "0" || cells[1] == "1") && (cells[2] == "" || cells[2] == "*");
}

TextRows separated(std::string_view text, char separator) {
  TextRows result;
  int64_t line = 1;
  const bool quoted = separator != '\t' || text.starts_with('"');
  std::string_view rest = text;
  const Cells names = next_row(rest, separator, quoted, line);
  if (separator == '\t' && is_cola(names)) {
    result.header = {"source", "label", "mark", "sentence"};
    rest = text;
    line = 1;
  } else {
    for (const auto& name : names) result.header.push_back(without_blanks(*name));
  }
  while (!rest.empty()) {
    const int64_t begin = line;
    const std::string_view before = rest;
    Cells cells = next_row(rest, separator, quoted, line);
    const std::string_view row = before.substr(0, before.size() - rest.size());
    if (cells.size() == 1 && row.find_first_not_of(" \t\r\n") == std::string_view::npos) continue;
    // One more would move the label of a text with a tab.
    WEFT_CHECK(cells.size() <= result.header.size(), "line ", begin, ": expected ", result.header.size(),
               " columns as in the first line, got ", cells.size(), ". Is there a ",
               separator == '\t'
                   ? "tab in a text?"
                   : str(separator == ',' ? "comma" : "semicolon", " in a text without quotation marks?"));
    result.rows.push_back({begin, std::move(cells)});
  }
  return result;
}

/// Commas, unless the first line has none: spreadsheets of many countries write semicolons.
char separator_of_csv(std::string_view text) {
  const std::string_view first = text.substr(0, text.find('\n'));
  if (first.find(',') != std::string_view::npos) return ',';
  return first.find(';') != std::string_view::npos ? ';' : first.find('\t') != std::string_view::npos ? '\t' : ',';
}

void add_object(TextRows& rows, const nlohmann::ordered_json& object, int64_t line) {
  WEFT_CHECK(object.is_object(), "line ", line, ": expected a JSON object, got ", object.type_name());
  TextRows::Row row{.line = line, .cells = Cells(rows.header.size())};
  for (const auto& [name, value] : object.items()) {
    auto place = std::find(rows.header.begin(), rows.header.end(), name);
    if (place == rows.header.end()) {
      place = rows.header.insert(place, name);
      row.cells.emplace_back();
    }
    const auto column = static_cast<size_t>(place - rows.header.begin());
    if (value.is_structured()) row.nested.push_back(column);
    if (!value.is_null()) row.cells[column] = value.is_string() ? value.get<std::string>() : value.dump();
  }
  rows.rows.push_back(std::move(row));
}

TextRows json_rows(std::string_view text, const std::string& path) {
  TextRows result;
  if (text.substr(std::min(text.find_first_not_of(" \t\r\n"), text.size())).starts_with('[')) {
    check_ordered(text, path);
    const auto list = nlohmann::ordered_json::parse(standard_json(text));
    for (int64_t number = 1; const auto& object : list) add_object(result, object, number++);
    text = {};
  }
  for (int64_t line = 1; !text.empty(); ++line) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view one = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (one.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    check_ordered(one, path);
    try {
      add_object(result, nlohmann::ordered_json::parse(standard_json(one)), line);
    } catch (const nlohmann::json::exception& error) {
      fail("line ", line, ": expected a JSON object a line, got ", printable(one, 80), " (", printable(error.what()),
           ')');
    }
  }
  for (TextRows::Row& row : result.rows) row.cells.resize(result.header.size());  // names that only later ones have
  return result;
}

}  // namespace

bool TextRows::Row::is_nested(size_t column) const { return std::ranges::find(nested, column) != nested.end(); }

TextRows read_text_rows(const std::filesystem::path& path) {
  const std::string whole = read_text(path, "text table");
  std::string_view text = whole;
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // a byte order mark
  WEFT_CHECK(!text.empty(), "text table: ", path.string(), " is empty");
  const std::string ending = path.extension().string();
  std::string lines;
  try {
    check_utf8(text, path);
    if (text.find('\n') == std::string_view::npos && text.find('\r') != std::string_view::npos) {
      lines = text;  // the lines of old Macs
      std::replace(lines.begin(), lines.end(), '\r', '\n');
      text = lines;
    }
    if (ending == ".json" || ending == ".jsonl") return json_rows(text, path.string());
    return separated(text, ending == ".csv" ? separator_of_csv(text) : '\t');
  } catch (const nlohmann::json::exception& error) {
    fail("text table: ", path.string(), ": expected JSON, got '", printable(error.what()), "'");
  } catch (const Error& error) {
    const std::string message = error.what();  // `line 3: …` becomes PATH:3: …
    if (message.starts_with("text table: ")) throw;
    fail("text table: ", path.string(), message.starts_with("line ") ? ":" + message.substr(5) : ": " + message);
  }
}

}  // namespace weft::data
