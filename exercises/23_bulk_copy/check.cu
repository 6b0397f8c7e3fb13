// SPDX-License-Identifier: Apache-2.0
#include "check.h"

void run(Check& check, bool measure) {
  for (const int n : measure ? std::vector<int>{8192} : std::vector<int>{4, 1024, 1028, 5000}) {
    const auto in = check.numbers(n);
    std::vector<float> expected((n + 1023) / 1024);
    for (int i = 0; i < n; ++i) expected[i / 1024] += in[i] * in[i];
    const Device<float> from(in), out(expected.size());
    tile_norms(from, out, n);
    check.equal("n = " + std::to_string(n), out, expected);
  }
}
