// SPDX-License-Identifier: Apache-2.0
#include "check.h"

void run(Check& check, bool measure) {
  struct Size {
    int rows, columns;
  };
  for (const auto [rows, columns] : measure ? std::vector<Size>{{1024, 1024}} : std::vector<Size>{{1, 1}, {32, 32}, {64, 96}, {33, 65}, {1, 100}, {100, 1}}) {
    const auto in = check.numbers(rows * columns, -1000, 1000);
    std::vector<float> expected(in.size());
    for (int y = 0; y < rows; ++y)
      for (int x = 0; x < columns; ++x) expected[x * rows + y] = in[y * columns + x];
    const Device<float> from(in), out(in.size());
    transpose(from, out, rows, columns);
    check.equal(std::to_string(rows) + " x " + std::to_string(columns), out, expected);
  }
}
