// SPDX-License-Identifier: Apache-2.0
#include "check.h"

void run(Check& check, bool measure) {
  for (const int n : measure ? std::vector<int>{128} : std::vector<int>{64, 128}) {
    const auto a = check.numbers(n * n), b = check.numbers(n * n);
    std::vector<float> expected(n * n);
    for (int row = 0; row < n; ++row)
      for (int k = 0; k < n; ++k)
        for (int column = 0; column < n; ++column) expected[row * n + column] += a[row * n + k] * b[k * n + column];
    const Device<float> da(a), db(b), c(n * n);
    matmul(da, db, c, n);
    check.equal("n = " + std::to_string(n), c, expected);
  }
}
