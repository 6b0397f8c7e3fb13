// SPDX-License-Identifier: Apache-2.0
#include "check.h"

void run(Check& check, bool measure) {
  struct Size {
    int rows, columns;
  };
  for (const auto [rows, columns] :
       measure ? std::vector<Size>{{512, 512}} : std::vector<Size>{{1, 1}, {3, 70}, {32, 32}, {33, 65}, {100, 40}}) {
    const auto in = check.numbers(rows * columns);
    const auto at = [&](int row, int column) {
      return row >= 0 && row < rows && column >= 0 && column < columns ? in[row * columns + column] : 0.0f;
    };
    std::vector<float> expected(in.size());
    for (int y = 0; y < rows; ++y) {
      for (int x = 0; x < columns; ++x) {
        float sum = 4 * at(y, x);
        for (int d = 1; d <= 4; ++d) sum -= (5 - d) * (at(y - d, x) + at(y + d, x) + at(y, x - d) + at(y, x + d));
        expected[y * columns + x] = sum;
      }
    }
    const Device<float> from(in), out(in.size());
    stencil(from, out, rows, columns);
    check.equal(std::to_string(rows) + " x " + std::to_string(columns), out, expected);
  }
}
