// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/ladder/counts.h"
#include "tests/support/hopper.h"

// The claims of the steps' comments, as far as the emulator can count them in nvcc's PTX. The names of the tests are
// those of the ladders.

namespace weft::tests {
namespace {

TEST(Claims, Transpose) {
  with_counts("transpose", [](const StepCounts& step) {
    const int64_t warps = 128 * 96 / 32;
    EXPECT_EQ(step[1].loads.sectors + step[1].stores.sectors, 36 * warps);
    EXPECT_EQ(step[2].loads.sectors + step[2].stores.sectors, 8 * warps);
    EXPECT_EQ(step[2].shared.wavefronts, 33 * warps);
    EXPECT_EQ(step[3].shared.wavefronts, 2 * warps);
    for (int i = 3; i <= 5; ++i) EXPECT_EQ(step[i].shared.conflicts, 0) << "step " << i;
    EXPECT_EQ(step[4].shared.wavefronts, step[3].shared.wavefronts);
    EXPECT_EQ(4 * (step[5].loads.requests + step[5].stores.requests), 2 * warps);
    EXPECT_EQ(step[5].loads.sectors + step[5].stores.sectors, 8 * warps);
  });
}

TEST(Claims, Reduce) {
  with_counts("reduce", [](const StepCounts& step) {
    const int64_t blocks = (1 << 16) / 256 + 1, first = 8,
                  last = 1;  // the store before the tree and the read after it
    EXPECT_EQ(step[1].shared.wavefronts, blocks * (first + 141 + last));
    EXPECT_EQ(step[1].shared.requests, step[1].shared.wavefronts);
    EXPECT_EQ(step[2].shared.requests, blocks * (first + 36 + last));
    EXPECT_EQ(step[2].shared.wavefronts, step[1].shared.wavefronts) << "conflicts cost what divergence did";
    EXPECT_EQ(step[3].shared.wavefronts, step[2].shared.requests);
    EXPECT_EQ(step[3].barriers, 9 * blocks);
    EXPECT_EQ(step[4].blocks, blocks / 2 + 1);
    EXPECT_EQ(step[5].shared.requests, step[5].blocks * (8 + 1));
    EXPECT_EQ(step[5].barriers, step[5].blocks);
    EXPECT_EQ(4 * step[6].loads.requests, step[5].loads.requests);
    for (int i = 1; i <= 6; ++i) EXPECT_EQ(step[i].shared.conflicts > 0, i == 2) << "step " << i;
  });
}

TEST(Claims, Softmax) {
  with_counts("softmax", [](const StepCounts& step) {
    const int64_t sectors = 128 * 256 / 8;  // sectors of x
    EXPECT_EQ(step[1].loads.sectors, 3 * 8 * sectors) << "three reads, each with 32 sectors where 4 would do";
    EXPECT_EQ(step[2].loads.sectors, 2 * 8 * sectors);
    EXPECT_EQ(step[3].loads.sectors, 2 * sectors);
    EXPECT_EQ(step[4].loads.sectors, sectors);
    EXPECT_EQ(step[5].loads.sectors, sectors);
    EXPECT_EQ(4 * step[5].loads.requests, step[4].loads.requests);
    for (int i = 1; i <= 5; ++i) EXPECT_EQ(step[i].stores.sectors, (i < 3 ? 8 : 1) * sectors) << "step " << i;
    for (int i = 1; i <= 5; ++i) EXPECT_EQ(step[i].barriers, 0) << "step " << i;
  });
}

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
    const int64_t tiles_k = warp_k / 64, stored = 8 * K;  // for warps; 8 warps store 4 + 4 lines for each 8 of k
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

TEST(Claims, MatmulBf16) {
  with_counts("matmul_bf16", [](const StepCounts& step) {
    const int64_t M = 256, N = 256, K = 128, mma = M * N * K / 2048;
    EXPECT_EQ(step[1].loads.sectors, 3 * M * N * K / 32);
    EXPECT_EQ(step[2].loads.sectors, 48 * mma);
    EXPECT_EQ(step[3].loads.sectors, 4 * mma);
    const int64_t stored =
        2 * K * (M * N / 64) / 128 * 2;  // wavefronts of 128 bytes: each of 64-wide tiles, once per k
    EXPECT_EQ(step[3].shared.wavefronts, 96 * mma / 8 + stored);
    EXPECT_EQ(step[4].shared.wavefronts, 16 * mma / 8 + stored);
    EXPECT_EQ(step[5].shared.wavefronts, step[4].shared.wavefronts);
    EXPECT_EQ(step[3].barriers, 2 * (K / 32) * (M / 64) * (N / 64));
    EXPECT_EQ(step[5].barriers, step[3].barriers / 2);
    EXPECT_EQ(step[6].loads.sectors, 2 * mma);
    EXPECT_EQ(step[6].shared.wavefronts, 24 * mma / 16 + stored / 2);
    for (int i = 4; i <= 6; ++i) EXPECT_EQ(step[i].shared.conflicts, 0) << "step " << i;
  });
}

TEST(Claims, MatmulBf16OnHopper) {
  if (const std::string why = why_no_wgmma(); !why.empty()) GTEST_SKIP() << why;
  with_counts("matmul_bf16", [](const StepCounts& step) {
    const int64_t M = 256, N = 256, K = 128, KiB = 1024;
    EXPECT_EQ(step[7].barriers, (M / 128) * (N / 128) * (1 + K / 64));
    EXPECT_EQ(step[7].bulk_bytes, (M / 128) * (N / 128) * (K / 64) * 32 * KiB);
    EXPECT_EQ(step[8].barriers, (M / 128) * (N / 256)) << "once, for the mbarriers";
    EXPECT_EQ(4 * step[8].bulk_bytes, 3 * step[7].bulk_bytes);
    EXPECT_EQ(step[9].barriers, step[9].blocks);
    EXPECT_LE(step[9].blocks, step[8].blocks);
    EXPECT_EQ(step[9].bulk_bytes, step[8].bulk_bytes);
    EXPECT_EQ(step[10].blocks, 2) << "one cluster";
    EXPECT_EQ(step[10].bulk_bytes, 2 * (K / 64) * 32 * KiB) << "32 KiB a step and block instead of 48";
    for (int i = 7; i <= 10; ++i) EXPECT_EQ(step[i].loads.requests, 0) << "step " << i;
  });
}

TEST(Claims, Conv2d) {
  with_counts("conv2d", [](const StepCounts& step) {
    const int64_t H = 8, C = 32, O = 64, K = 9 * C, pixels = H * H;
    const int64_t inside = (3 * H - 2) * (3 * H - 2);  // taps of all pixels that lie in the image
    EXPECT_EQ(step[1].loads.sectors, 33 * inside * C * O / 32);
    EXPECT_EQ(step[2].stores.sectors - step[3].stores.sectors, pixels * K / 16) << "the buffer, 16 elements a sector";
    // Both products load tiles of 32 elements, 2 sectors, a warp: f in both, and the buffer or its part in the
    // image.
    const int64_t filters = pixels / 32 * (O * K / 16);
    EXPECT_EQ(step[2].loads.sectors, inside * C / 16 + O / 32 * (pixels * K / 16) + filters);
    EXPECT_EQ(step[3].loads.sectors, O / 32 * (inside * C / 16) + filters);
    EXPECT_EQ(step[3].shared.wavefronts, step[2].shared.wavefronts);
    EXPECT_EQ(step[4].loads.sectors, inside * C / 16 + O * K / 16) << "one tile of 64 x 64";
    for (int i = 2; i <= 4; ++i) EXPECT_EQ(step[i].shared.conflicts, 0) << "step " << i;
  });
}

TEST(Claims, Attention) {
  with_counts("attention", [](const StepCounts& step) {
    const int64_t L = 128, D = 64, matrix = L * L / 8,
                  heads = L * D / 16;  // sectors of the scores, and of q, k, v or y
    EXPECT_EQ(step[1].stores.sectors, 2 * matrix + heads);
    // q is a broadcast, k has one sector a lane; the matrix twice in softmax, once per 32 of D in values; v.
    EXPECT_EQ(step[1].loads.sectors, 33 * (L * L / 32) * D + 2 * matrix + L * L * (D / 32) + L * heads);
    for (int i = 2; i <= 4; ++i) EXPECT_LT(step[i].stores.sectors, matrix) << "no score is stored: step " << i;
    for (int i = 2; i <= 4; ++i)
      EXPECT_EQ(step[i].loads.sectors, 2 * heads + L / 64 * 2 * heads)
          << "q in halves of sectors, k and v once per 64 queries: step " << i;
    EXPECT_EQ(2 * step[4].barriers, step[3].barriers);
    for (int i = 1; i <= 4; ++i) EXPECT_EQ(step[i].shared.conflicts, 0) << "step " << i;
  });
}

}  // namespace
}  // namespace weft::tests
