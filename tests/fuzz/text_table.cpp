// SPDX-License-Identifier: Apache-2.0
// Input: a table of texts and labels, as GLUE's tasks have them.
#include "data/text/text_table.h"

#include "kernels/error.h"
#include "tests/fuzz/fuzz.h"

using namespace weft;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::Folder folder;
  const auto file = folder.write("train.tsv", {data, data + size});
  fuzz::expect_value_or_error([&] {
    const data::TextTable table = data::read_text_table(file);
    for (const data::LabelledText& row : table.rows)
      if (row.label < -1 || row.label >= static_cast<int64_t>(table.classes.size())) std::abort();
  });
  return 0;
}
