// SPDX-License-Identifier: Apache-2.0
#include "check.h"

void run(Check& check, bool measure) {
  for (const int n : measure ? std::vector<int>{4096} : std::vector<int>{1, 33, 256, 257, 1000}) {
    const auto in = check.numbers(n);
    std::vector<int> expected((n + 255) / 256);
    for (int i = 0; i < n; ++i) expected[i / 256] += in[i] > 0;
    const Device<float> from(in);
    const Device<int> out(expected.size());
    count_positive(from, out, n);
    check.equal("n = " + std::to_string(n), out, expected);
  }
}
