// SPDX-License-Identifier: Apache-2.0
#include "data/table/columns.h"
#include "kernels/error.h"

namespace weft::data {

Columns read_parquet(const std::filesystem::path& path, const ChooseColumns&) {
  fail("table: cannot read ", path.string(),
       ": built without Parquet. Install Apache Arrow's libarrow-dev and libparquet-dev, then configure again.");
}

}  // namespace weft::data
