// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "weft_ptx.h"

void run(Check& check, bool measure) {
  for (const int count : measure ? std::vector<int>{64} : std::vector<int>{1, 4, 7}) {
    const auto a = check.numbers<bf16>(count * 256), b = check.numbers<bf16>(count * 128);
    std::vector<float> expected(count * 128);
    for (int i = 0; i < count * 128; ++i)
      for (int k = 0; k < 16; ++k) expected[i] += a[i / 8 * 16 + k] * b[i / 128 * 128 + k * 8 + i % 8];
    const Device<bf16> da(a), db(b);
    const Device<float> d(expected.size());
    products(da, db, d, count);
    check.equal(std::to_string(count) + " products", d, expected);
  }
}
