// SPDX-License-Identifier: Apache-2.0
#include "check.h"

void run(Check& check, bool measure) {
  struct Size {
    int n, steps;
  };
  for (const auto [n, steps] : measure ? std::vector<Size>{{256, 4}} : std::vector<Size>{{1, 1}, {33, 1}, {100, 3}, {256, 1}, {256, 6}}) {
    const auto in = check.numbers(n);
    std::vector<float> expected(in);
    for (int step = 0; step < steps; ++step) {
      const std::vector<float> before(expected);
      for (int i = 0; i < n; ++i) expected[i] = ((i > 0 ? before[i - 1] : 0) + before[i] + (i + 1 < n ? before[i + 1] : 0)) / 4;
    }
    const Device<float> from(in), out(n);
    smooth(from, out, n, steps);
    check.equal("n = " + std::to_string(n) + ", " + std::to_string(steps) + " steps", out, expected);
  }
}
