// SPDX-License-Identifier: Apache-2.0
#include <arrow/api.h>
#include <arrow/compute/cast.h>
#include <parquet/arrow/reader.h>
#include <parquet/exception.h>

#include <limits>

#include "core/text.h"
#include "data/table/columns.h"
#include "kernels/error.h"

namespace weft::data {
namespace {

using Read = std::shared_ptr<arrow::ChunkedArray>;

void check(const arrow::Status& status) { WEFT_CHECK(status.ok(), printable(status.message(), 200)); }

/// None: Arrow does not cast one type to the other, or a value does not fit.
Read cast(const Read& cells, const std::shared_ptr<arrow::DataType>& type) {
  const auto result = arrow::compute::Cast(cells, type);
  return result.ok() ? result->chunked_array() : nullptr;
}

/// `Array`: the class of the chunks. Each value as a Cell; a null as `null`.
template <class Array, class Cell>
std::vector<Cell> cells_of(const arrow::ChunkedArray& column, const Cell& null) {
  std::vector<Cell> cells;
  cells.reserve(static_cast<size_t>(column.length()));
  for (const auto& chunk : column.chunks()) {
    const auto& array = static_cast<const Array&>(*chunk);
    for (int64_t i = 0; i < array.length(); ++i) cells.push_back(array.IsNull(i) ? null : Cell(array.GetView(i)));
  }
  return cells;
}

Columns::Column column_of(Read column) {
  const std::string type = column->type()->ToString();
  if (column->type()->id() == arrow::Type::DICTIONARY)
    column = cast(column, static_cast<const arrow::DictionaryType&>(*column->type()).value_type());
  if (column && arrow::is_numeric(column->type()->id()))
    if (const Read numbers = cast(column, arrow::float64()))
      return {cells_of<arrow::DoubleArray>(*numbers, std::numeric_limits<double>::quiet_NaN())};
  if (column) column = cast(column, arrow::large_utf8());
  if (!column) return {.cells = {}, .refused = type};
  check(column->ValidateFull());  // finds texts that are no UTF-8, too
  return {cells_of<arrow::LargeStringArray>(*column, std::string())};
}

}  // namespace

Columns read_parquet(const std::filesystem::path& path, const ChooseColumns& choose) {
  const std::string file = printable(path.string());
  Columns result;
  std::vector<std::string> names;
  std::unique_ptr<parquet::arrow::FileReader> reader;
  const auto reading = [&](const auto& read) {
    try {
      read();
    } catch (const std::exception& error) {
      fail("table: ", file,
           ": expected a Parquet file, got one that Arrow does not read: ", printable(error.what(), 200));
    }
  };
  reading([&] {
    parquet::arrow::FileReaderBuilder builder;
    check(builder.OpenFile(path.string()));
    check(builder.Build(&reader));
    std::shared_ptr<arrow::Schema> schema;
    check(reader->GetSchema(&schema));
    names = schema->field_names();
    result.rows = reader->parquet_reader()->metadata()->num_rows();
  });
  for (const size_t place : choose(names)) {
    reading([&] {
      Read column;
      check(reader->ReadColumn(static_cast<int>(place), &column));
      WEFT_CHECK(column->length() == result.rows, "column '", printable(names[place]), "' has ", column->length(),
                 " of ", result.rows, " rows");
      result.columns.push_back(column_of(std::move(column)));
    });
    result.header.push_back(names[place]);
  }
  return result;
}

}  // namespace weft::data
