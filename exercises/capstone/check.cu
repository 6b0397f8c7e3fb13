// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "weft_ptx.h"

void run(Check& check, bool measure) {
  if (measure) {  // one launch of the size that is scored; tools/lab/score.py counts some of its blocks
    constexpr size_t n = 2048;
    const Device<bf16> a(n * n), b(n * n);
    const Device<float> c(n * n);
    cudaMemset(a, 0, n * n * sizeof(bf16));
    cudaMemset(b, 0, n * n * sizeof(bf16));
    product(a, b, c, n);
    cudaDeviceSynchronize();
    return;
  }
  for (const int n : {128, 256, 384}) {
    const auto a = check.numbers<bf16>(n * n), b = check.numbers<bf16>(n * n);
    std::vector<float> expected(n * n);
    for (int row = 0; row < n; ++row)
      for (int k = 0; k < n; ++k) {
        const float value = static_cast<float>(a[row * n + k]);
        for (int column = 0; column < n; ++column)
          expected[row * n + column] += value * static_cast<float>(b[k * n + column]);
      }
    const Device<bf16> da(a), db(b);
    const Device<float> c(n * n);
    product(da, db, c, n);
    check.equal("n = " + std::to_string(n), c, expected);  // whole numbers below 2^24: every sum is exact
  }
}
