// SPDX-License-Identifier: Apache-2.0
#include "check.h"

void run(Check& check, bool measure) {
  struct Size {
    int n, largest;
  };
  for (const auto [n, largest] : measure ? std::vector<Size>{{1 << 16, 255}} : std::vector<Size>{{1, 255}, {31, 255}, {257, 255}, {1000, 0}, {10000, 255}}) {
    const auto in = check.numbers<unsigned char>(n, 0, largest);
    std::vector<unsigned> expected(256);
    for (const unsigned char value : in) ++expected[value];
    const Device<unsigned char> from(in);
    const Device<unsigned> bins(256);
    histogram(from, n, bins);
    check.equal("n = " + std::to_string(n) + ", values to " + std::to_string(largest), bins, expected);
  }
}
