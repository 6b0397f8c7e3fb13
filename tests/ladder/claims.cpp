// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/ladder/counts.h"

// What the steps' comment pages claim, as far as the emulator can count it. The names of the tests are those of the
// ladders. In builds that cannot count (checks, sanitizers) there is nothing to hold: CannotCount says so.

namespace weft::tests {
namespace {

TEST(Claims, MatmulF32) {
  with_counts("matmul_f32", [](const StepCounts& step) {
    const int64_t M = 128, N = 128, K = 64, warp_k = M * N * K / 32;  // multiply-adds of a warp in steps 1 to 3
    EXPECT_EQ(step[1].loads.sectors, 33 * warp_k);
    EXPECT_EQ(step[2].loads.sectors, 5 * warp_k);
    EXPECT_EQ(step[1].stores.sectors, 8 * step[2].stores.sectors);
    EXPECT_EQ(step[3].loads.sectors, 8 * warp_k / 32) << "20 times less than step 2";
    const int64_t stored_3 = 2 * warp_k / 32;
    EXPECT_EQ(step[3].shared.wavefronts, 2 * warp_k + stored_3) << "two for a multiply-add";
    EXPECT_EQ(step[3].barriers, 2 * (K / 32) * (M / 32) * (N / 32));
    EXPECT_EQ(2 * step[4].loads.sectors, step[3].loads.sectors);
    EXPECT_EQ(step[4].shared.wavefronts, 9 * warp_k / 8 + stored_3 / 2) << "9 for 8 multiply-adds";
    EXPECT_EQ(2 * step[5].loads.sectors, step[4].loads.sectors);
    const int64_t tiles_k = warp_k / 64, stored = 8 * K;  // of the warps; 8 warps store 4 + 4 lines for each 8 of k
    EXPECT_EQ(step[5].shared.wavefronts, 48 * tiles_k + stored);
    EXPECT_EQ(step[5].shared.conflicts, 32 * tiles_k);
    EXPECT_EQ(step[6].shared.wavefronts, 20 * tiles_k + stored * 3 / 2) << "the store of a twice";
    EXPECT_EQ(4 * step[6].loads.requests, step[5].loads.requests);
    EXPECT_EQ(step[7].shared.wavefronts, 12 * tiles_k + stored);
    EXPECT_EQ(step[7].shared.conflicts, 0);
    EXPECT_EQ(2 * step[8].barriers, step[7].barriers);
    EXPECT_EQ(step[8].shared.wavefronts, step[7].shared.wavefronts);
    EXPECT_EQ(step[9].shared.wavefronts, 8 * tiles_k + stored);
    for (int i = 6; i < 10; ++i) EXPECT_EQ(step[i].loads.sectors, step[5].loads.sectors) << "step " << i;
  });
}

}  // namespace
}  // namespace weft::tests
