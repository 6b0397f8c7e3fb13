// SPDX-License-Identifier: Apache-2.0
#include "check.h"

void run(Check& check, bool measure) {
  struct Size {
    int rows, columns, largest;
  };
  const std::vector<Size> sizes{{1, 1, 8}, {4, 32, 8}, {3, 33, 8}, {40, 100, 8}, {7, 300, 8}, {5, 64, 200}};
  for (const auto [rows, columns, largest] : measure ? std::vector<Size>{{128, 256, 8}} : sizes) {
    const auto in = check.numbers(rows * columns, -largest, largest);
    std::vector<float> expected(in.size());
    for (int r = 0; r < rows; ++r) {
      double most = -1e30, sum = 0;
      for (int c = 0; c < columns; ++c) most = std::fmax(most, in[r * columns + c]);
      for (int c = 0; c < columns; ++c) sum += std::exp(in[r * columns + c] - most);
      for (int c = 0; c < columns; ++c) {
        const double value = std::exp(in[r * columns + c] - most) / sum;
        expected[r * columns + c] = value < 1e-30 ? 0.0f : static_cast<float>(value);
      }
    }
    const Device<float> from(in), out(in.size());
    softmax(from, out, rows, columns);
    // Below 1e-30 floats lose their digits: such values count as 0.
    std::vector<float> got = out.download();
    for (float& value : got)
      if (value >= 0 && value < 1e-30f) value = 0;
    const Device<float> rounded(got);
    // exp errs by some units in the last place of an argument of up to 400, the sum by one for each of 300 terms.
    check.equal(std::to_string(rows) + " x " + std::to_string(columns) + ", values to " + std::to_string(largest), rounded, expected, 1e-4);
  }
}
