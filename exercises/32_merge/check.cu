// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "check.h"

void run(Check& check, bool measure) {
  struct Size {
    int n, m, largest;
  };
  const std::vector<Size> sizes{{1, 1, 0},     {0, 40, 9},         {40, 0, 9},
                                {500, 700, 5}, {1000, 24, 100000}, {1500, 2600, 1000}};
  for (const auto [n, m, largest] : measure ? std::vector<Size>{{20000, 20000, 100000}} : sizes) {
    auto a = check.numbers<int>(n, -largest, largest), b = check.numbers<int>(m, -largest, largest);
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    std::vector<int> expected(n + m);
    std::merge(a.begin(), a.end(), b.begin(), b.end(), expected.begin());
    const Device<int> da(a), db(b), out(expected.size());
    merge(da, n, db, m, out);
    check.equal(std::to_string(n) + " and " + std::to_string(m) + " numbers", out, expected);
  }
}
