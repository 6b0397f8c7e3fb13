// SPDX-License-Identifier: Apache-2.0
#include "data/table.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <unordered_map>

#include "core/text.h"
#include "data/text/text_table.h"
#include "kernels/error.h"

namespace weft::data {

namespace {

/// The largest number that a column may hold; whole numbers pass through f64, which holds 2^53.
double largest_of(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return 65504;
    case DType::f32:
      return std::numeric_limits<float>::max();
    case DType::bf16:
      return 3.3895e38;
    case DType::f64:
      return std::numeric_limits<double>::max();
    case DType::i64:
      return 0x1p53 - 1;
    case DType::i32:
      return std::numeric_limits<int32_t>::max();
    case DType::u8:
      return 255;
    case DType::boolean:
      return 1;
  }
  return 0;
}

/// pandas reads these as no value.
const std::set<std::string> kMissing{"NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "null", "NULL", "None"};

/// Such a cell leaves its column one of numbers: numbers() names it.
bool is_infinite(std::string text) {
  if (text.starts_with('-') || text.starts_with('+')) text.erase(0, 1);
  return text == "inf" || text == "Inf" || text == "Infinity";
}

}  // namespace

Table::Table(const std::filesystem::path& path) : file_(printable(path.string())), cells_(read_text_rows(path)) {
  std::set<std::string> seen;
  for (const std::string& name : cells_.header)
    WEFT_CHECK(seen.insert(name).second, "table: ", file_, ": expected a name for each column, got '", printable(name),
               "' twice");
  WEFT_CHECK(!cells_.rows.empty(), "table: ", file_, ": expected at least one row below the names, got none");
}

size_t Table::place_of(const std::string& name) const {
  const auto found = std::find(cells_.header.begin(), cells_.header.end(), name);
  WEFT_CHECK(found != cells_.header.end(), "table: ", file_, ": expected the name of a column, got '", printable(name),
             "'.", suggestion(name, cells_.header));
  return static_cast<size_t>(found - cells_.header.begin());
}

const std::string& Table::cell(size_t row, size_t column) const {
  static const std::string none;
  const auto& cells = cells_.rows[row].cells;
  return column < cells.size() && cells[column] ? *cells[column] : none;
}

std::string Table::value(size_t row, size_t column) const {
  const std::string& text = cell(row, column);
  WEFT_CHECK(!cells_.rows[row].is_nested(column), where(row, column), ": expected a number or a text, got ",
             printable(text, 80));
  const size_t begin = text.find_first_not_of(" \t\r"), end = text.find_last_not_of(" \t\r");
  std::string inner = begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
  return kMissing.contains(inner) ? "" : inner;
}

std::string Table::where(size_t row, size_t column) const {
  return str("table: ", file_, " line ", cells_.rows[row].line, ", column '", printable(cells_.header[column]), "'");
}

std::vector<std::string> Table::number_columns() const {
  std::vector<std::string> names;
  for (size_t column = 0; column < cells_.header.size(); ++column) {
    bool any = false, all = true;
    for (size_t row = 0; row < cells_.rows.size() && all; ++row) {
      all = !cells_.rows[row].is_nested(column);
      const std::string text = all ? value(row, column) : "";
      double number = 0;
      if (!text.empty()) any = all = parse_score(text, number) || is_infinite(text);
    }
    if (any && all) names.push_back(cells_.header[column]);
  }
  return names;
}

Tensor Table::numbers(const std::vector<std::string>& names, DType dtype, std::optional<double> missing) const {
  WEFT_CHECK(!names.empty(), "table: ", file_, ": expected the names of columns, got none");
  std::vector<size_t> places;
  for (const std::string& name : names) places.push_back(place_of(name));
  std::vector<double> values;
  values.reserve(cells_.rows.size() * places.size());
  for (size_t row = 0; row < cells_.rows.size(); ++row)
    for (const size_t column : places) {
      const std::string text = value(row, column);
      double number = missing.value_or(0);
      WEFT_CHECK(!text.empty() || missing, where(row, column), ": expected a number, got ",
                 cell(row, column).empty() ? "an empty cell" : cell(row, column),
                 ". Give `missing`, the number that stands for it");
      WEFT_CHECK(text.empty() || parse_score(text, number), where(row, column), ": expected a finite number, got '",
                 printable(text), "'");
      const double most = largest_of(dtype);
      WEFT_CHECK(std::abs(number) <= most &&
                     (is_floating(dtype) || (number == std::floor(number) && (dtype != DType::u8 || number >= 0))),
                 where(row, column), ": expected a number that ", weft::name(dtype),
                 " holds (whole ones below 2^53), got '", printable(text), "'");
      values.push_back(number);
    }
  return Tensor::from(values, {rows(), static_cast<int64_t>(places.size())}).to(dtype);
}

Categories Table::categories(const std::string& name, std::vector<std::string> known) const {
  const size_t column = place_of(name);
  const bool learnt = known.empty();
  if (learnt) {
    std::set<std::string> found;
    for (size_t row = 0; row < cells_.rows.size(); ++row) found.insert(value(row, column));
    known.assign(found.begin(), found.end());
    double unused = 0;
    if (std::all_of(known.begin(), known.end(), [&](const std::string& text) { return parse_score(text, unused); }))
      std::stable_sort(known.begin(), known.end(), [](const std::string& a, const std::string& b) {
        double x = 0, y = 0;
        return parse_score(a, x) && parse_score(b, y) && x < y;
      });
  }
  std::unordered_map<std::string, int64_t> places;
  for (size_t i = 0; i < known.size(); ++i) places.emplace(known[i], static_cast<int64_t>(i));
  std::vector<int64_t> indices;
  for (size_t row = 0; row < cells_.rows.size(); ++row) {
    const std::string text = value(row, column);
    WEFT_CHECK(!text.empty(), where(row, column), ": expected a class, got ",
               cell(row, column).empty() ? "an empty cell" : cell(row, column));
    const auto at = places.find(text);
    WEFT_CHECK(at != places.end(), where(row, column), ": expected a known class, got '", printable(text), "'.",
               suggestion(text, known));
    indices.push_back(at->second);
  }
  return {Tensor::from(indices, {rows()}), std::move(known)};
}

std::vector<std::string> Table::texts(const std::string& name) const {
  const size_t column = place_of(name);
  std::vector<std::string> texts;
  for (size_t row = 0; row < cells_.rows.size(); ++row) texts.push_back(cell(row, column));
  return texts;
}

}  // namespace weft::data
