// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace weft::data {

/// A file of rows and columns, not yet known what they mean.
struct TextRows {
  struct Row {
    int64_t line = 0;                               ///< where it begins, from 1
    std::vector<std::optional<std::string>> cells;  ///< none: JSON's null, or a name that this object lacks
    std::vector<size_t> nested = {};                ///< columns whose cell is the JSON of a list or an object
    bool is_nested(size_t column) const;
  };
  std::vector<std::string> header;  ///< names of the columns, without blanks around them
  std::vector<Row> rows;            ///< with at most as many cells as the header
};

/// Reads tab-separated values (`.tsv` and all other names), comma-separated values (`.csv`), or JSON objects, one a
/// line or in a list (`.json`, `.jsonl`). Among commas, and among tabs where the first line's names are quoted, a cell
/// between quotation marks may hold anything; elsewhere they are characters like any other. A `.csv` whose first line
/// has semicolons or tabs and no comma is separated by these. The first line names the columns, but for GLUE's CoLA,
/// which has none: source, label, mark and sentence. Errors: the file cannot be read, is empty or no UTF-8; a row has
/// more cells than the first line; a quotation or JSON does not end; the text names file and line.
TextRows read_text_rows(const std::filesystem::path& path);

}  // namespace weft::data
