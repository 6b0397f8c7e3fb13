// SPDX-License-Identifier: Apache-2.0
#include "check.h"

void run(Check& check, bool measure) {
  struct Size {
    int rows, columns;
  };
  for (const auto [rows, columns] :
       measure ? std::vector<Size>{{2048, 128}} : std::vector<Size>{{1, 1}, {3, 33}, {257, 64}, {1000, 5}}) {
    const auto in = check.numbers(rows * columns);
    std::vector<float> expected(columns);
    for (size_t i = 0; i < in.size(); ++i) expected[i % columns] += in[i];
    const Device<float> from(in), out(columns);
    column_sums(from, out, rows, columns);
    check.equal(std::to_string(rows) + " x " + std::to_string(columns), out, expected);
  }
}
