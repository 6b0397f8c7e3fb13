// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include "check.h"

void run(Check& check, bool measure) {
  for (const int n : measure ? std::vector<int>{8192} : std::vector<int>{1, 31, 256, 257, 1000, 5000}) {
    const auto in = check.numbers(n);
    std::vector<float> expected;
    for (const float value : in)
      if (value > 0) expected.push_back(value);
    const Device<float> from(in), out(n);
    const Device<int> count(1);
    compact(from, out, count, n);
    check.equal("n = " + std::to_string(n) + ": count", count, {static_cast<int>(expected.size())});
    auto got = out.download();
    got.resize(expected.size());
    std::sort(got.begin(), got.end());
    std::sort(expected.begin(), expected.end());
    check.equal("n = " + std::to_string(n), got, expected);
  }
}
