// SPDX-License-Identifier: Apache-2.0
#include "check.h"

void run(Check& check, bool measure) {
  for (const int groups : measure ? std::vector<int>{64} : std::vector<int>{1, 3, 4, 9, 30}) {
    const auto in = check.numbers(groups * 64, -500, 500);
    std::vector<float> expected(in.size());
    for (size_t i = 0; i < in.size(); ++i) expected[i / 64 * 64 + i % 2 * 32 + i % 64 / 2] = in[i];
    const Device<float> from(in), out(in.size());
    split(from, out, groups);
    check.equal(std::to_string(groups) + " groups", out, expected);
  }
}
