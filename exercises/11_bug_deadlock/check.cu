// SPDX-License-Identifier: Apache-2.0
#include "check.h"

void run(Check& check, bool measure) {
  for (const int groups : measure ? std::vector<int>{64} : std::vector<int>{4, 1, 3, 5, 64}) {
    const auto in = check.numbers(groups * 32);
    std::vector<float> expected(groups * 2);
    for (size_t i = 0; i < in.size(); ++i) expected[i / 32 * 2 + i % 2] += in[i];
    const Device<float> from(in), out(expected.size());
    halves(from, out, groups);
    check.equal(std::to_string(groups) + " groups", out, expected);
  }
}
