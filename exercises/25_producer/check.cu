// SPDX-License-Identifier: Apache-2.0
#include "check.h"

void run(Check& check, bool measure) {
  for (const int tiles : measure ? std::vector<int>{16} : std::vector<int>{1, 2, 3, 4, 7}) {
    const auto in = check.numbers(tiles * 512), weight = check.numbers(tiles, 1, 4);
    std::vector<float> expected(512);
    for (size_t i = 0; i < in.size(); ++i) expected[i % 512] += weight[i / 512] * in[i];
    const Device<float> from(in), by(weight), out(512);
    weighted_sums(from, by, out, tiles);
    check.equal(std::to_string(tiles) + " tiles", out, expected);
  }
}
