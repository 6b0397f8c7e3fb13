// SPDX-License-Identifier: Apache-2.0
#include "check.h"

void run(Check& check, bool measure) {
  for (const int n : measure ? std::vector<int>{4096} : std::vector<int>{1, 31, 32, 255, 256, 257, 1000, 4096}) {
    const auto a = check.numbers(n), b = check.numbers(n);
    std::vector<float> expected(n);
    for (int i = 0; i < n; ++i) expected[i] = a[i] + b[i];
    const Device<float> da(a), db(b), out(n);
    add(da, db, out, n);
    check.equal("n = " + std::to_string(n), out, expected);
  }
}
