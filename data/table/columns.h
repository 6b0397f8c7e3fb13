// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <variant>
#include <vector>

namespace weft::data {

/// A file's cells by columns.
struct Columns {
  struct Column {
    std::variant<std::vector<std::string>, std::vector<double>> cells;  ///< texts ("": empty) or numbers (NaN: empty)
    std::vector<size_t> nested = {};  ///< rows, rising, whose text is the JSON of a list or an object
    std::string refused = {};         ///< the type of cells that are neither numbers, truths nor texts; "": they are
  };
  std::vector<std::string> header;  ///< a name for each column
  std::vector<Column> columns;      ///< each has `rows` cells
  int64_t rows = 0;
  std::vector<int64_t> lines = {};  ///< where rows begin in a text file, from 1; empty: of another file
};

/// Which of a file's columns to read, by their names: their places.
using ChooseColumns = std::function<std::vector<size_t>(const std::vector<std::string>& header)>;

/// Reads these columns of a Parquet file by Apache Arrow. Decimals, and integers beyond 2^53, are texts. Errors:
/// `table: FILE: …`: the file is damaged or encrypted, or this build has no Arrow.
Columns read_parquet(const std::filesystem::path& path, const ChooseColumns& choose);

}  // namespace weft::data
