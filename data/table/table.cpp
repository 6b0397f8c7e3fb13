// SPDX-License-Identifier: Apache-2.0
#include "data/table/table.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fstream>
#include <limits>
#include <set>
#include <unordered_map>

#include "core/text.h"
#include "data/text/text_rows.h"
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

/// Also a number beyond f64. Such a cell leaves its column one of numbers: numbers() names it.
bool is_infinite(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return stop == text.data() + text.size() && (error == std::errc::result_out_of_range || std::isinf(value));
}

bool is_parquet(const std::filesystem::path& path) {
  std::array<char, 4> first{};
  std::ifstream(path, std::ios::binary).read(first.data(), first.size());
  return path.extension() == ".parquet" || std::string_view(first.data(), first.size()) == "PAR1";
}

Columns columns_of(TextRows text, const ChooseColumns& choose) {
  Columns result{.header = {}, .columns = {}, .rows = static_cast<int64_t>(text.rows.size())};
  for (const TextRows::Row& row : text.rows) result.lines.push_back(row.line);
  for (const size_t place : choose(text.header)) {
    result.header.push_back(text.header[place]);
    Columns::Column column;
    std::vector<std::string> cells(text.rows.size());
    for (size_t row = 0; row < cells.size(); ++row) {
      auto& from = text.rows[row].cells;
      if (place < from.size() && from[place]) cells[row] = std::move(*from[place]);
      if (text.rows[row].is_nested(place)) column.nested.push_back(row);
    }
    column.cells = std::move(cells);
    result.columns.push_back(std::move(column));
  }
  return result;
}

}  // namespace

Table::Table(const std::filesystem::path& path, const TableOptions& options) : file_(printable(path.string())) {
  const auto once = [&](const std::vector<std::string>& names) {
    std::set<std::string> seen;
    for (const std::string& name : names)
      WEFT_CHECK(seen.insert(name).second, "table: ", file_, ": expected a name for each column, got '",
                 printable(name), "' twice");
  };
  const auto choose = [&](const std::vector<std::string>& header) {
    once(header), once(options.columns);
    cells_.header = header;
    std::vector<size_t> places;
    for (const std::string& name : options.columns.empty() ? header : options.columns) places.push_back(place_of(name));
    return places;
  };
  cells_ = is_parquet(path) ? read_parquet(path, choose) : columns_of(read_text_rows(path), choose);
  WEFT_CHECK(rows() > 0, "table: ", file_, ": expected at least one row, got none");
}

size_t Table::place_of(const std::string& name) const {
  const auto found = std::find(cells_.header.begin(), cells_.header.end(), name);
  WEFT_CHECK(found != cells_.header.end(), "table: ", file_, ": expected the name of a column, got '", printable(name),
             "'.", suggestion(name, cells_.header));
  return static_cast<size_t>(found - cells_.header.begin());
}

std::string Table::cell(size_t row, size_t column) const {
  const Columns::Column& from = cells_.columns[column];
  WEFT_CHECK(from.refused.empty(), "table: ", file_, ", column '", printable(cells_.header[column]),
             "': expected numbers, truths or texts, got ", printable(from.refused, 80));
  if (const auto* texts = std::get_if<std::vector<std::string>>(&from.cells)) return (*texts)[row];
  const double number = std::get<std::vector<double>>(from.cells)[row];
  std::array<char, 32> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
  return std::isnan(number) ? "" : std::string(text.data(), end);
}

std::string Table::value(size_t row, size_t column) const {
  const std::string text = cell(row, column);
  WEFT_CHECK(!std::ranges::binary_search(cells_.columns[column].nested, row), where(row, column),
             ": expected a number or a text, got ", printable(text, 80));
  const size_t begin = text.find_first_not_of(" \t\r"), end = text.find_last_not_of(" \t\r");
  std::string inner = begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
  return kMissing.contains(inner) ? "" : inner;
}

std::optional<double> Table::number(size_t row, size_t column) const {
  double number = 0;
  if (const auto* numbers = std::get_if<std::vector<double>>(&cells_.columns[column].cells)) {
    number = (*numbers)[row];
    if (std::isnan(number)) return std::nullopt;
    if (std::isfinite(number)) return number;
  }
  const std::string text = value(row, column);
  if (text.empty()) return std::nullopt;
  WEFT_CHECK(parse_score(text, number), where(row, column), ": expected a finite number, got '", printable(text), "'");
  return number;
}

std::string Table::where(size_t row, size_t column) const {
  return str("table: ", file_, cells_.lines.empty() ? str(" row ", row + 1) : str(" line ", cells_.lines[row]),
             ", column '", printable(cells_.header[column]), "'");
}

std::vector<std::string> Table::number_columns() const {
  std::vector<std::string> names;
  for (size_t column = 0; column < cells_.header.size(); ++column) {
    const auto& [cells, nested, refused] = cells_.columns[column];
    const auto* numbers = std::get_if<std::vector<double>>(&cells);
    bool any = numbers && !std::ranges::all_of(*numbers, [](double x) { return std::isnan(x); });
    bool all = nested.empty() && refused.empty();
    for (size_t row = 0; !numbers && all && row < static_cast<size_t>(rows()); ++row) {
      const std::string text = value(row, column);
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
  values.reserve(static_cast<size_t>(rows()) * places.size());
  const auto holds = [&, most = largest_of(dtype)](double number) {
    if (is_floating(dtype)) return !std::isfinite(number) || std::abs(number) <= most;
    return std::abs(number) <= most && number == std::floor(number) && (dtype != DType::u8 || number >= 0);
  };
  const std::string whole = str(" that ", weft::name(dtype), " holds (whole ones below 2^53), got ");
  WEFT_CHECK(!missing || holds(*missing), "table: ", file_, ": expected a number as `missing`", whole, *missing);
  for (size_t row = 0; row < static_cast<size_t>(rows()); ++row)
    for (const size_t column : places) {
      const auto found = number(row, column);
      WEFT_CHECK(found || missing, where(row, column), ": expected a number, got ",
                 cell(row, column).empty() ? "an empty cell" : cell(row, column),
                 ". Give `missing`, the number that stands for it");
      const double number = found ? *found : *missing;
      WEFT_CHECK(holds(number), where(row, column), ": expected a number", whole, '\'', printable(value(row, column)),
                 "'");
      values.push_back(number);
    }
  return Tensor::from(values, {rows(), static_cast<int64_t>(places.size())}).to(dtype);
}

Categories Table::categories(const std::string& name, std::vector<std::string> known) const {
  const size_t column = place_of(name);
  const bool learnt = known.empty();
  if (learnt) {
    std::set<std::string> found;
    for (size_t row = 0; row < static_cast<size_t>(rows()); ++row) found.insert(value(row, column));
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
  for (size_t row = 0; row < static_cast<size_t>(rows()); ++row) {
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
  for (size_t row = 0; row < static_cast<size_t>(rows()); ++row) texts.push_back(cell(row, column));
  return texts;
}

}  // namespace weft::data
