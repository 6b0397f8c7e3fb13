// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "weft_ptx.h"

void run(Check& check, bool measure) {
  for (const int rows : measure ? std::vector<int>{128} : std::vector<int>{64, 192}) {
    const auto a = check.numbers<bf16>(rows * 64), b = check.numbers<bf16>(64 * 8);
    std::vector<float> expected(rows * 8);
    for (int i = 0; i < rows * 8; ++i)
      for (int k = 0; k < 64; ++k) expected[i] += a[i / 8 * 64 + k] * b[k * 8 + i % 8];
    const Device<bf16> da(a), db(b);
    const Device<float> d(expected.size());
    product(da, db, d, rows);
    check.equal(std::to_string(rows) + " rows", d, expected);
  }
}
