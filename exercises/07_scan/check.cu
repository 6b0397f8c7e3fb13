// SPDX-License-Identifier: Apache-2.0
#include "check.h"

void run(Check& check, bool measure) {
  for (const int n : measure ? std::vector<int>{1024} : std::vector<int>{1, 2, 31, 32, 33, 100, 1000, 1024}) {
    const auto in = check.numbers<int>(n);
    std::vector<int> expected(in);
    for (int i = 1; i < n; ++i) expected[i] += expected[i - 1];
    const Device<int> from(in), out(n);
    scan(from, out, n);
    check.equal("n = " + std::to_string(n), out, expected);
  }
}
