// SPDX-License-Identifier: Apache-2.0
#include "data/text/text_table.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "io/file_reader.h"
#include "kernels/error.h"

namespace weft::data {
namespace {

std::vector<std::string> columns_of(std::string line) {
  if (line.ends_with('\r')) line.pop_back();
  std::vector<std::string> columns;
  size_t begin = 0;
  for (size_t tab; (tab = line.find('\t', begin)) != std::string::npos; begin = tab + 1)
    columns.push_back(line.substr(begin, tab - begin));
  columns.push_back(line.substr(begin));
  return columns;
}

/// The first of `names` that the header has; -1: none.
int find_column(const std::vector<std::string>& header, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const auto found = std::find(header.begin(), header.end(), name); found != header.end())
      return static_cast<int>(found - header.begin());
  return -1;
}

bool is_number(const std::string& text) {
  return !text.empty() && text.size() < 10 && text.find_first_not_of("0123456789") == std::string::npos;
}

/// The labels in use: by value where all are numbers.
std::vector<std::string> sorted_classes(const std::vector<std::string>& labels) {
  const std::set<std::string> distinct(labels.begin(), labels.end());
  std::vector<std::string> classes(distinct.begin(), distinct.end());
  if (std::all_of(classes.begin(), classes.end(), is_number))
    std::sort(classes.begin(), classes.end(), [](const auto& a, const auto& b) { return std::stol(a) < std::stol(b); });
  return classes;
}

}  // namespace

TextTable read_text_table(const std::filesystem::path& path) {
  std::istringstream in(read_text(path, "text table"));
  std::string line;
  WEFT_CHECK(std::getline(in, line), "text table: ", path.string(), " is empty");
  if (line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);  // a byte order mark
  const std::vector<std::string> header = columns_of(line);
  const int first = find_column(header, {"sentence", "text", "sentence1", "#1 String"});
  const int second = find_column(header, {"sentence2", "#2 String"}), label = find_column(header, {"label", "Quality"});
  WEFT_CHECK(first >= 0, "text table: ", path.string(),
             ":1: expected a column named sentence, text, sentence1 or #1 String");

  TextTable table;
  table.pairs = second >= 0;
  std::vector<std::string> labels;
  const int last = std::max({first, second, label});
  for (int64_t number = 2; std::getline(in, line); ++number) {
    if (line.empty() || line == "\r") continue;
    std::vector<std::string> columns = columns_of(line);
    WEFT_CHECK(static_cast<int>(columns.size()) > last, "text table: ", path.string(), ':', number, ": expected ",
               last + 1, " columns, got ", columns.size());
    // One more would move the label of a text with a tab.
    WEFT_CHECK(columns.size() <= header.size(), "text table: ", path.string(), ':', number, ": expected ",
               header.size(), " columns as in the first line, got ", columns.size(), ". Is there a tab in a text?");
    WEFT_CHECK(label < 0 || !columns[static_cast<size_t>(label)].empty(), "text table: ", path.string(), ':', number,
               ": expected a label, got none");
    table.rows.push_back({std::move(columns[static_cast<size_t>(first)]),
                          second < 0 ? std::string() : std::move(columns[static_cast<size_t>(second)])});
    if (label >= 0) labels.push_back(std::move(columns[static_cast<size_t>(label)]));
  }
  WEFT_CHECK(!in.bad(), "text table: cannot read ", path.string());
  table.classes = sorted_classes(labels);
  std::map<std::string, int64_t> numbers;  // a table of scores has as many classes as rows
  for (const std::string& name : table.classes) numbers.emplace(name, static_cast<int64_t>(numbers.size()));
  for (size_t i = 0; i < labels.size(); ++i) table.rows[i].label = numbers.at(labels[i]);
  table.description = str(path.filename().string(), ": ", table.rows.size(), table.pairs ? " pairs" : " sentences",
                          ", ", table.classes.size(), " classes");
  return table;
}

}  // namespace weft::data
