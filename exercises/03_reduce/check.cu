// SPDX-License-Identifier: Apache-2.0
#include "check.h"

void run(Check& check, bool measure) {
  for (const int n : measure ? std::vector<int>{1 << 16} : std::vector<int>{1, 31, 32, 33, 1000, 1024, 12345}) {
    const auto in = check.numbers(n);
    float total = 0;
    for (const float value : in) total += value;
    const Device<float> from(in), out(1);
    sum(from, out, n);
    check.equal("n = " + std::to_string(n), out, {total});
  }
}
