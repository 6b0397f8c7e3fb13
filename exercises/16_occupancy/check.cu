// SPDX-License-Identifier: Apache-2.0
#include "check.h"

void run(Check& check, bool measure) {
  for (const int n : measure ? std::vector<int>{8192} : std::vector<int>{1, 1000, 3333}) {
    const auto table = check.numbers(kTable);
    const auto index = check.numbers<int>(n, 0, kTable - 1);
    std::vector<float> expected(n);
    for (int i = 0; i < n; ++i) expected[i] = table[index[i]];
    const Device<float> from(table), out(n);
    const Device<int> at(index);
    look_up(from, at, out, n);
    check.equal("n = " + std::to_string(n), out, expected);
  }
}
