// SPDX-License-Identifier: Apache-2.0
#include "check.h"

void run(Check& check, bool measure) {
  for (const int tiles : measure ? std::vector<int>{16} : std::vector<int>{1, 2, 3, 8, 17}) {
    const auto in = check.numbers(tiles * 256);
    std::vector<float> expected(tiles);
    for (size_t i = 0; i < in.size(); ++i) expected[i / 256] += in[i];
    const Device<float> from(in), out(tiles);
    tile_sums(from, out, tiles);
    check.equal(std::to_string(tiles) + " tiles", out, expected);
  }
}
