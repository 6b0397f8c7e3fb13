// SPDX-License-Identifier: Apache-2.0
#include "data/text/text_table.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <locale>
#include <map>
#include <set>
#include <sstream>

#include "core/text.h"
#include "data/text/text_rows.h"
#include "kernels/error.h"

namespace weft::data {
namespace {

using Names = std::vector<std::string>;

/// In small letters. GLUE's tasks, and what others call the same.
const std::vector<Names> kTexts{{"sentence1", "sentence2"},
                                {"question1", "question2"},
                                {"question", "sentence"},
                                {"premise", "hypothesis"},
                                {"#1 string", "#2 string"},
                                {"question", "answer"},
                                {"question", "passage"},
                                {"question", "context"},
                                {"query", "passage"},
                                {"query", "document"},
                                {"text_a", "text_b"},
                                {"text1", "text2"},
                                {"sentence_a", "sentence_b"},
                                {"text", "text_pair"},
                                {"sentence"},
                                {"text"},
                                {"sentence1"},
                                {"#1 string"},
                                {"question"},
                                {"review"},
                                {"content"},
                                {"comment"},
                                {"tweet"},
                                {"document"}};
const std::vector<Names> kLabels{{"label"},   {"labels"}, {"gold_label"},  {"target"},
                                 {"quality"}, {"class"},  {"is_duplicate"}};
/// Numbers, parses and single annotators of GLUE's files.
const std::set<std::string> kSayNothing{"",
                                        "unnamed: 0",
                                        "index",
                                        "id",
                                        "idx",
                                        "guid",
                                        "#1 id",
                                        "#2 id",
                                        "qid1",
                                        "qid2",
                                        "promptid",
                                        "pairid",
                                        "captionid",
                                        "genre",
                                        "filename",
                                        "year",
                                        "old_index",
                                        "source",
                                        "source1",
                                        "source2",
                                        "mark",
                                        "sentence1_binary_parse",
                                        "sentence2_binary_parse",
                                        "sentence1_parse",
                                        "sentence2_parse",
                                        "label1",
                                        "label2",
                                        "label3",
                                        "label4",
                                        "label5"};

std::string small(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return text;
}

std::string without_blanks_around(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r\n"), end = text.find_last_not_of(" \t\r\n");
  return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
}

std::string listed(const Names& columns) { return printable(joined(columns, 20)); }

/// -1: there is none.
int place_of(const Names& header, const std::string& name) {
  for (size_t i = 0; i < header.size(); ++i)
    if (small(header[i]) == small(name)) return static_cast<int>(i);
  return -1;
}

bool all_there(const Names& header, const Names& names) {
  return std::all_of(names.begin(), names.end(), [&](const std::string& name) { return place_of(header, name) >= 0; });
}

/// The one of `known` that the header has; a column of a pair is no text by itself. Empty: none. Errors: several.
Names choose(const Names& header, const std::vector<Names>& known, const char* what, const char* flag) {
  std::vector<Names> found;
  for (const Names& names : known) {
    const bool part = names.size() == 1 && std::any_of(found.begin(), found.end(), [&](const Names& pair) {
                        return std::find(pair.begin(), pair.end(), names[0]) != pair.end();
                      });
    if (all_there(header, names) && !part) found.push_back(names);
  }
  if (found.empty()) return {};
  WEFT_CHECK(found.size() == 1, "expected one choice of ", what, ", got '", joined(found[0]), "' and '",
             joined(found[1]), "'. ", flag, " says which");
  return found[0];
}

/// pandas, R and databases write these for no value; nobody names a class so.
bool is_no_value(const std::string& label) {
  return label == "NaN" || label == "nan" || label == "null" || label == "NULL" || label == "<NA>";
}

bool is_number(const std::string& text) {
  return !text.empty() && text.size() < 10 && text.find_first_not_of("0123456789") == std::string::npos;
}

/// The labels in use: by value where all are numbers.
Names sorted_classes(const Names& labels) {
  const std::set<std::string> distinct(labels.begin(), labels.end());
  Names classes(distinct.begin(), distinct.end());
  if (std::all_of(classes.begin(), classes.end(), is_number))
    std::sort(classes.begin(), classes.end(), [](const auto& a, const auto& b) { return std::stol(a) < std::stol(b); });
  return classes;
}

bool are_scores(const Names& classes) {
  double value = 0;
  return std::all_of(classes.begin(), classes.end(), [&](const std::string& one) { return parse_score(one, value); }) &&
         std::any_of(classes.begin(), classes.end(),
                     [](const std::string& one) { return one.find_first_of(".eE") != std::string::npos; });
}

struct Columns {
  std::vector<int> texts;
  int label = -1;
};

Columns find_columns(const Names& header, const TextTableOptions& options) {
  for (size_t i = 0; i < header.size(); ++i)
    WEFT_CHECK(header[i].empty() || place_of(header, header[i]) == static_cast<int>(i),
               "expected other names for each column, got '", printable(header[i]), "' twice");
  Names texts = options.texts;
  if (texts.empty()) texts = choose(header, kTexts, "texts", "--text-column-names");
  WEFT_CHECK(
      !texts.empty(),
      "expected a column named sentence, text, sentence1 or #1 String, or a pair as sentence1 and sentence2, got ",
      listed(header), ". --text-column-names says which are the texts");
  Names label{options.label};
  if (options.label.empty()) label = choose(header, kLabels, "labels", "--label-column-name");
  if (label.empty() && place_of(header, "score") >= 0) label = {"score"};  // STS-B; beside a label it is a confidence
  Columns result;
  const auto place = [&](const std::string& name) {
    const int found = place_of(header, name);
    WEFT_CHECK(found >= 0, "expected a column named '", printable(name), "', got ", listed(header));
    return found;
  };
  for (const std::string& name : texts) result.texts.push_back(place(name));
  if (!label.empty()) result.label = place(label[0]);
  std::vector<int> all = result.texts;
  if (result.label >= 0) all.push_back(result.label);
  for (size_t i = 0; i < all.size(); ++i)
    WEFT_CHECK(std::find(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(i), all[i]) ==
                   all.begin() + static_cast<std::ptrdiff_t>(i),
               "expected texts and label in columns of their own, got '",
               printable(header[static_cast<size_t>(all[i])]), "' twice");
  return result;
}

}  // namespace

bool parse_score(const std::string& text, double& value) {
  const char *begin = text.data() + (text.starts_with("+") && !text.starts_with("+-") ? 1 : 0),
             *end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(begin, end, value);
  if (error != std::errc::result_out_of_range) return error == std::errc() && stop == end && std::isfinite(value);
  // Too large, or so near to 0 that it is 0, as a stream tells.
  std::istringstream stream(std::string(begin, stop));
  stream.imbue(std::locale::classic());
  return stop == end && stream >> value;
}

TextTable read_text_table(const std::filesystem::path& path, const TextTableOptions& options) {
  TextRows file = read_text_rows(path);
  TextTable table;
  Columns columns;
  try {
    columns = find_columns(file.header, options);
  } catch (const Error& error) {
    fail("text table: ", path.string(), ":1: ", error.what());
  }
  for (size_t i = 0; i < file.header.size(); ++i) {
    const auto place = static_cast<int>(i);
    const bool used = std::find(columns.texts.begin(), columns.texts.end(), place) != columns.texts.end();
    if (!used && place != columns.label && !kSayNothing.contains(small(file.header[i])))
      table.unused.push_back(file.header[i]);
  }
  table.columns = file.header;
  table.pairs = columns.texts.size() == 2;
  Names labels;
  const int last = std::max(*std::max_element(columns.texts.begin(), columns.texts.end()), columns.label);
  for (TextRows::Row& row : file.rows) {
    const std::string where = str("text table: ", path.string(), ':', row.line);
    WEFT_CHECK(static_cast<int>(row.cells.size()) > last, where, ": expected ", last + 1, " columns, got ",
               row.cells.size());
    LabelledText text;
    for (const int place : columns.texts) {
      auto& cell = row.cells[static_cast<size_t>(place)];
      const bool nested = row.is_nested(static_cast<size_t>(place));
      WEFT_CHECK(cell.has_value() && !nested, where, ": expected a text '",
                 printable(file.header[static_cast<size_t>(place)]), "', got ",
                 nested ? "a list or an object" : "none");
      (place == columns.texts[0] ? text.first : text.second) = std::move(*cell);
    }
    if (columns.label >= 0) {
      const std::string label = without_blanks_around(row.cells[static_cast<size_t>(columns.label)].value_or(""));
      WEFT_CHECK(!row.is_nested(static_cast<size_t>(columns.label)), where,
                 ": expected one label, got a list or an object. Texts of several labels are not trained");
      WEFT_CHECK(!label.empty(), where, ": expected a label, got none");
      WEFT_CHECK(!is_no_value(label), where, ": expected a label, got ", label,
                 ", which other programs write for none. Leave the row out, or give the class another name");
      if (label == "-" && small(file.header[static_cast<size_t>(columns.label)]) == "gold_label") {
        ++table.without_label;
        continue;
      }
      labels.push_back(label);
    }
    table.rows.push_back(std::move(text));
  }
  table.classes = sorted_classes(labels);
  if (table.classes == Names{"-1"})
    table.classes.clear(), labels.clear();  // GLUE's test parts as Hugging Face has them
  table.scores = are_scores(table.classes);
  std::map<std::string, int64_t> numbers;  // a table of scores has as many classes as rows
  for (const std::string& name : table.classes) numbers.emplace(name, static_cast<int64_t>(numbers.size()));
  for (size_t i = 0; i < labels.size(); ++i) table.rows[i].label = numbers.at(labels[i]);
  table.description = str(path.filename().string(), ": ", table.rows.size(), table.pairs ? " pairs" : " sentences",
                          ", ", table.classes.size(), table.scores ? " different scores" : " classes");
  return table;
}

}  // namespace weft::data
