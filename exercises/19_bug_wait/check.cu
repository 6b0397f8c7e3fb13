// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include "check.h"

void run(Check& check, bool measure) {
  for (const int tiles : measure ? std::vector<int>{16} : std::vector<int>{1, 2, 3, 4, 9}) {
    const auto in = check.numbers(tiles * 256, -500, 500);
    std::vector<float> expected(tiles);
    for (int t = 0; t < tiles; ++t) expected[t] = *std::max_element(&in[t * 256], &in[t * 256] + 256);
    const Device<float> from(in), out(tiles);
    tile_max(from, out, tiles);
    check.equal(std::to_string(tiles) + " tiles", out, expected);
  }
}
