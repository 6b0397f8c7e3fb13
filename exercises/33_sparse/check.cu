// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "check.h"

// Rows of 0 to `longest` entries, in runs of neighbouring columns as finite elements have them.
void run(Check& check, bool measure) {
  struct Size {
    int rows, columns, longest;
  };
  for (const auto [rows, width, longest] :
       measure ? std::vector<Size>{{4096, 4096, 128}}
               : std::vector<Size>{{1, 1, 1}, {5, 100, 70}, {130, 64, 40}, {1000, 300, 3}}) {
    const auto lengths = check.numbers<int>(rows, 0, longest), begins = check.numbers<int>(rows, 0, 1 << 20);
    std::vector<int> offsets(rows + 1), columns;
    for (int r = 0; r < rows; ++r) {
      const int length = std::min(lengths[r], width);
      for (int e = 0; e < length; ++e) columns.push_back(begins[r] % (width - length + 1) + e);
      offsets[r + 1] = offsets[r] + length;
    }
    if (columns.empty()) columns.push_back(0), offsets[rows] = 1;
    const auto values = check.numbers(columns.size()), x = check.numbers(width);
    std::vector<float> expected(rows);
    for (int r = 0; r < rows; ++r)
      for (int e = offsets[r]; e < offsets[r + 1]; ++e) expected[r] += values[e] * x[columns[e]];
    const Device<int> at(offsets), column(columns);
    const Device<float> value(values), from(x), y(rows);
    multiply(at, column, value, from, y, rows);
    check.equal(std::to_string(rows) + " rows of at most " + std::to_string(longest) + " entries", y, expected);
  }
}
