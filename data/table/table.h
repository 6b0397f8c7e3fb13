// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "data/table/columns.h"

namespace weft::data {

/// The classes of a column.
struct Categories {
  Tensor indices;                  ///< i64 [rows]: each cell's place among `names`
  std::vector<std::string> names;  ///< in the order of numbers where all are numbers, else of the alphabet
};

/// A Table may have a part of its file.
struct TableOptions {
  std::vector<std::string> columns = {};  ///< names of columns to read, in this order; none: all of the file
};

/// A table of numbers and texts: CSV, TSV, or JSON lines, as read_text_rows() reads them, or a Parquet file, by Apache
/// Arrow. Blanks around a number or a class do not count, and NA, NaN, null, None and the like are empty cells, as
/// pandas has it. In Parquet, truths are `true` and `false`, dates and times are texts, and a null is an empty cell.
/// Errors of all functions name file, line (of Parquet: row) and column.
class Table {
 public:
  /// Errors: those of read_text_rows(); a Parquet file that Arrow refuses, or in a build without Arrow; a column's name
  /// that comes twice or is not there, no rows.
  explicit Table(const std::filesystem::path& path, const TableOptions& options = {});

  int64_t rows() const { return cells_.rows; }
  const std::vector<std::string>& columns() const { return cells_.header; }
  /// The columns whose cells are numbers (infinite ones, too) or empty, one at least a number.
  std::vector<std::string> number_columns() const;

  /// These columns as [rows, columns]. `missing` stands for empty cells; of a floating dtype it may be NaN. Errors: no
  /// columns, or no such column (the text names the nearest); a cell that is no finite number that the dtype holds, a
  /// `missing` that it does not hold; an empty cell without `missing`.
  Tensor numbers(const std::vector<std::string>& names, DType dtype = DType::f32,
                 std::optional<double> missing = std::nullopt) const;
  /// A column as classes. `known`: those of the training set, in its order. Errors: no such column, an empty cell, a
  /// class that is not known.
  Categories categories(const std::string& name, std::vector<std::string> known = {}) const;
  /// A column as it is written; "" for an empty cell. Errors: no such column.
  std::vector<std::string> texts(const std::string& name) const;

 private:
  size_t place_of(const std::string& name) const;
  std::string cell(size_t row, size_t column) const;
  /// The cell without blanks around it; "": there is no value.
  std::string value(size_t row, size_t column) const;
  /// Errors: another text than a finite number.
  std::optional<double> number(size_t row, size_t column) const;
  std::string where(size_t row, size_t column) const;

  std::string file_;
  Columns cells_;
};

}  // namespace weft::data
