// SPDX-License-Identifier: Apache-2.0
#include "check.h"

void run(Check& check, bool measure) {
  constexpr int kWidth = 32;
  for (const int length : measure ? std::vector<int>{256} : std::vector<int>{1, 7, 32, 100, 130}) {
    // Scores from -400 to 400: exp overflows without the maximum, which rises while the keys pass.
    const auto q = check.numbers(length * kWidth, -8, 8), k = check.numbers(length * kWidth, -8, 8),
               v = check.numbers(length * kWidth);
    std::vector<float> expected(q.size());
    std::vector<double> weights(length);
    for (int i = 0; i < length; ++i) {
      double most = -1e30, sum = 0;
      for (int j = 0; j < length; ++j) {
        weights[j] = 0;
        for (int d = 0; d < kWidth; ++d) weights[j] += q[i * kWidth + d] * k[j * kWidth + d] / std::sqrt(32.0);
        most = std::fmax(most, weights[j]);
      }
      for (double& weight : weights) sum += weight = std::exp(weight - most);
      for (int d = 0; d < kWidth; ++d) {
        double value = 0;
        for (int j = 0; j < length; ++j) value += weights[j] / sum * v[j * kWidth + d];
        expected[i * kWidth + d] = static_cast<float>(value + 64);
      }
    }
    const Device<float> dq(q), dk(k), dv(v), out(q.size());
    attention(dq, dk, dv, out, length);
    // Values that cancel have no digits of their own: 64 is added to both sides. A score of 400 has an error of 3e-5 in
    // f32, and so has its weight; the values are at most 8.
    std::vector<float> got = out.download();
    for (float& value : got) value += 64;
    const Device<float> shifted(got);
    check.equal(std::to_string(length) + " queries and keys", shifted, expected, 2e-5);
  }
}
