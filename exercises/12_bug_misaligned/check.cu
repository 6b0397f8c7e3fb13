// SPDX-License-Identifier: Apache-2.0
#include "check.h"

void run(Check& check, bool measure) {
  struct Size {
    int rows, columns;
  };
  for (const auto [rows, columns] : measure ? std::vector<Size>{{16, 256}} : std::vector<Size>{{1, 4}, {3, 64}, {2, 7}, {5, 33}, {4, 1}, {3, 130}}) {
    const auto in = check.numbers(rows * columns), factor = check.numbers(rows);
    std::vector<float> expected(in);
    for (size_t i = 0; i < in.size(); ++i) expected[i] *= factor[i / columns];
    const Device<float> from(in), by(factor), out(in.size());
    scale(from, by, out, rows, columns);
    check.equal(std::to_string(rows) + " x " + std::to_string(columns), out, expected);
  }
}
