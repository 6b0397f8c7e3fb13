// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/matmul_wgmma_case.h"
#include "tests/support/emulator_seed.h"

// Products on TMA and wgmma (kernels/cuda/gemm/gemm_wgmma.cuh), each way of cutting them into tiles on sizes that the
// emulator can afford.

namespace weft::tests {
namespace {

using kernels::Activation;
using kernels::Grad;
using kernels::View;
using kernels::WgmmaPlan;
using kernels::WgmmaPlanScope;
using enum WgmmaPlan::Tile;

constexpr Activation kWgmmaActivations[] = {Activation::none, Activation::relu, Activation::gelu,
                                            Activation::gelu_tanh};

TEST(MatmulWgmma, EveryTileInEveryLayout) {
  on_wgmma([](DeviceKind kind) {
    for (const auto& [tile, cluster] : {std::pair{small, 1},
                                        {medium, 1},
                                        {medium, 2},
                                        {large, 1},
                                        {large, 2},
                                        {tall, 1},
                                        {broad, 1},
                                        {ping_pong, 1},
                                        {ping_pong, 2},
                                        {cluster_split_k, 2}})
      for (const bool transpose_a : {false, true})
        for (const bool transpose_b : {false, true})
          check_wgmma(
              kind,
              {1, pick(1, 300), pick(1, 300), pick(1, 200), transpose_a ? DType::f16 : DType::bf16,
               transpose_b ? DType::f32 : (transpose_a ? DType::f16 : DType::bf16), transpose_a, transpose_b, true},
              {.tile = tile, .cluster = cluster});
  });
}

/// Clusters take two of three rows of tiles together, and the last row in pairs of neighbours, of which the second may
/// be missing.
TEST(MatmulWgmma, OddRowsOfTilesInClusters) {
  on_wgmma([](DeviceKind kind) {
    for (const bool transpose_b : {false, true})
      for (const auto& [tile, n] : {std::pair{medium, 264}, {medium, 456}, {large, 264}, {ping_pong, 264}})
        for (const int64_t m : {300, 40})
          check_wgmma(kind, {.B = 1 + m % 3, .M = m, .N = n, .K = 136, .transpose_b = transpose_b, .bias = true},
                      {.tile = tile, .cluster = 2});
  });
}

/// Two consumers take every other tile of a block: several tiles each, an odd number of them, and shares of the depth
/// that differ in length.
TEST(MatmulWgmma, TilesInTurns) {
  on_wgmma([](DeviceKind kind) {
    for (const int cluster : {1, 2})
      for (const int64_t k : {64, 200, 8 * 64})
        check_wgmma(kind, {.B = 1, .M = 640, .N = 600, .K = k, .bias = true}, {.tile = ping_pong, .cluster = cluster});
    check_wgmma(kind, {.B = 3, .M = 500, .N = 520, .K = 72}, {.tile = ping_pong, .cluster = 2});
    check_wgmma(kind, {.B = 1, .M = 300, .N = 260, .K = 64 * 11}, {.tile = ping_pong, .splits = 4});
  });
}

/// Residuals come through the stages of the main loop: in one stage or two behind a tile's last step. Cases are several
/// tiles of a block, tiles that reach beyond y, and y's own memory.
TEST(MatmulWgmma, BringsResiduals) {
  on_wgmma([](DeviceKind kind) {
    for (const auto& [tile, cluster] :
         {std::pair{small, 1}, {medium, 1}, {medium, 2}, {large, 1}, {large, 2}, {ping_pong, 1}, {ping_pong, 2}})
      for (const int64_t k : {64, 64 * 9 + 8})
        for (const Activation activation : {Activation::none, Activation::relu})
          check_wgmma(kind,
                      {.B = k == 64 ? 2 : 1,
                       .M = 400,
                       .N = 328,
                       .K = k,
                       .in = activation == Activation::none ? DType::bf16 : DType::f16,
                       .out = activation == Activation::none ? DType::bf16 : DType::f16,
                       .transpose_b = cluster == 2,
                       .bias = true,
                       .activation = activation,
                       .pre = activation == Activation::relu,
                       .residual = true},
                      {.tile = tile, .cluster = cluster});
  });
}

/// The blocks of a cluster share a tile's depth: shares of equal and of different length, more steps than stages,
/// columns of half of the tile, and each way of storing accumulators.
TEST(MatmulWgmma, BlocksShareATile) {
  on_wgmma([](DeviceKind kind) {
    for (const int blocks : {2, 4})
      for (const int64_t k : {64 * 4, 64 * 9 + 8, 64 * 30})
        for (const int64_t n : {264, 70, 69})
          check_wgmma(kind,
                      {.B = k == 256 ? 2 : 1,
                       .M = 140,
                       .N = n,
                       .K = k,
                       .out = n == 69 ? DType::f32 : DType::bf16,
                       .transpose_b = blocks == 2,
                       .bias = true,
                       .activation = n == 70 ? Activation::gelu : Activation::none,
                       .pre = n == 70,
                       .residual = k != 256},
                      {.tile = cluster_split_k, .cluster = blocks});
    check_wgmma(kind, {.B = 1, .M = 70, .N = 40, .K = 64},
                {.tile = cluster_split_k, .cluster = 2});  // one step: not shared
  });
}

/// Rows with a gap, as the logits of a vocabulary that is no multiple of 8: by TMA, also where K is split.
TEST(MatmulWgmma, RowsWithAGap) {
  on_wgmma([](DeviceKind kind) {
    for (const auto& [tile, cluster] :
         {std::pair{small, 1}, {medium, 1}, {large, 2}, {ping_pong, 2}, {cluster_split_k, 2}})
      for (const DType out : {DType::bf16, DType::f32})
        for (const int64_t n : {269, 262})
          check_wgmma(kind, {.B = 1, .M = 140, .N = n, .K = 77, .out = out, .bias = true, .gap = 272 - n},
                      {.tile = tile, .cluster = cluster});
    check_wgmma(kind, {.B = 2, .M = 70, .N = 69, .K = 77, .gap = 3}, {.tile = medium});
    check_wgmma(kind, {.B = 1, .M = 70, .N = 69, .K = 640, .bias = true, .gap = 3}, {.tile = medium, .splits = 4});
    check_wgmma(kind, {.B = 1, .M = 70, .N = 68, .K = 640, .bias = true, .gap = 4}, {.tile = medium, .splits = 4});
  });
}

/// Lines of operands that end within 16 bytes, and a result whose rows have a gap, without wgmma: operands hold NaN
/// behind their lines.
TEST(MatmulGaps, OnBothGenerations) {
  on_both_generations([](DeviceKind kind) {
    for (const DType dtype : {DType::bf16, DType::f16})
      for (const bool transpose_a : {false, true})
        for (const bool transpose_b : {false, true})
          for (const int64_t k : {77, 1801})  // the longer one is split
            check_wgmma(kind, {.B = 1,
                               .M = 67,
                               .N = 69,
                               .K = k,
                               .in = dtype,
                               .out = dtype,
                               .transpose_a = transpose_a,
                               .transpose_b = transpose_b,
                               .bias = true,
                               .gap = 3});
    check_wgmma(kind, {.B = 2, .M = 35, .N = 70, .K = 33, .bias = true, .grad = Grad::accumulate, .gap = 2});
    check_wgmma(
        kind,
        {.B = 1, .M = 35, .N = 69, .K = 33, .activation = Activation::gelu, .pre = true, .residual = true, .gap = 3});
  });
}

TEST(MatmulWgmma, MoreStepsThanStages) {
  on_wgmma([](DeviceKind kind) {
    for (const auto& [tile, cluster] : {std::pair{small, 1}, {medium, 2}, {large, 2}, {ping_pong, 2}})
      check_wgmma(kind, {1, 130, 72, 64 * 9 + 8}, {.tile = tile, .cluster = cluster});
  });
}

// A stage that is released too early shows only where the next load overtakes the products. The order of the threads
// decides: one product in five fails.
TEST(MatmulWgmma, NoLoadOvertakesTheProducts) {
  on_wgmma([](DeviceKind kind) {
    in_orders(12, [&] {
      for (const int steps : {7, 11, 12, 15})
        check_wgmma(kind, {1, 66, 40, 64 * steps}, {.tile = steps == 12 ? medium : small});
    });
  });
}

TEST(MatmulWgmma, EveryEpilogue) {
  on_wgmma([](DeviceKind kind) {
    for (const DType out : {DType::bf16, DType::f32})
      for (const Activation activation : kWgmmaActivations)
        for (const int64_t n : {72, 70, 69})  // lines for TMA, for pairs, and for neither
          check_wgmma(kind,
                      {2, 65, n, 72, DType::bf16, out, false, true, true, false, false, activation, n != 70, n != 72},
                      {.tile = activation == Activation::relu ? small
                               : out == DType::bf16           ? ping_pong
                                                              : medium});
  });
}

TEST(MatmulWgmma, Accumulates) {
  on_wgmma([](DeviceKind kind) {
    for (const int64_t n : {200, 201})
      for (const DType out : {DType::bf16, DType::f32})
        check_wgmma(kind, {.B = 1, .M = 90, .N = n, .K = 80, .out = out, .bias = true, .grad = Grad::accumulate},
                    {.tile = large});
  });
}

/// A residual at any address: neither TMA nor pairs.
TEST(MatmulWgmma, AddsResidualsOfAnyAlignment) {
  on_wgmma([](DeviceKind kind) {
    constexpr int64_t kRows = 70, kColumns = 72, kDepth = 64;
    for (const int64_t offset : {1, 2, 8}) {
      const WgmmaFactor a(kind, DType::bf16, 1, kRows, kDepth, false), b(kind, DType::bf16, 1, kDepth, kColumns, false);
      const auto old = uniform(kRows * kColumns + offset, DType::bf16, 2, 3);
      const DeviceArray held(kind, DType::bf16, {kRows * kColumns + offset}, old),
          y(kind, DType::bf16, {1, kRows, kColumns});
      View residual = y.view();
      residual.data = static_cast<char*>(held.view().data) + 2 * offset;
      const WgmmaPlanScope scope({.tile = medium});
      kernels::matmul_fused(queue_on(kind), y, View::none(), a.view, b.view, View::none(), residual, {});
      EXPECT_EQ(scope.uses(), 1);
      std::vector<double> want(old.begin() + offset, old.end());
      for (int64_t i = 0; i < kRows; ++i)
        for (int64_t k = 0; k < kDepth; ++k)
          for (int64_t j = 0; j < kColumns; ++j)
            want[i * kColumns + j] += a.at(0, i, k, kRows, kDepth) * b.at(0, k, j, kDepth, kColumns);
      EXPECT_TRUE(near(y.host(), want, tolerance(DType::bf16, kDepth))) << offset;
    }
  });
}

TEST(MatmulWgmma, BatchesAndBroadcasts) {
  on_wgmma([](DeviceKind kind) {
    for (const bool a : {false, true})
      for (const bool b : {false, true})
        check_wgmma(kind, {.B = 3, .M = 70, .N = 136, .K = 40, .broadcast_a = a, .broadcast_b = b},
                    {.tile = a ? small : medium, .cluster = 2});
  });
}

TEST(MatmulWgmma, SharedOutDepth) {
  on_wgmma([](DeviceKind kind) {
    for (const auto& [n, splits] : {std::pair{72, 3}, {69, 5}})
      for (const bool transpose : {false, true})
        check_wgmma(kind,
                    {.B = 1,
                     .M = 100,
                     .N = n,
                     .K = 650,
                     .transpose_a = transpose,
                     .transpose_b = !transpose,
                     .bias = true,
                     .activation = Activation::gelu,
                     .pre = true,
                     .residual = true},
                    {.tile = transpose ? small : medium, .splits = splits});
    // Few sums of many shares, which 16 threads add up: the last of them have none; lines of fours and of no fours.
    for (const int64_t n : {24, 23})
      check_wgmma(kind, {.B = 1, .M = 21, .N = n, .K = 64 * 35, .bias = true}, {.tile = small, .splits = 35});
  });
}

TEST(MatmulWgmma, TheSameBitsInEveryRun) {
  on_wgmma([](DeviceKind kind) {
    const WgmmaFactor a(kind, DType::bf16, 1, 60, 1500, false), b(kind, DType::bf16, 1, 1500, 56, false);
    for (const auto& [tile, cluster] : {std::pair{small, 1}, {cluster_split_k, 2}, {cluster_split_k, 4}}) {
      const WgmmaPlanScope scope({.tile = tile, .splits = 3, .cluster = cluster});
      std::vector<double> first;
      in_orders(2, [&] {
        DeviceArray y(kind, DType::f32, {1, 60, 56});
        kernels::matmul(queue_on(kind), y, a.view, b.view, View::none(), {});
        if (first.empty()) first = y.host();
        EXPECT_EQ(y.host(), first);
      });
    }
  });
}

TEST(MatmulWgmma, PlansFollowTheSizes) {
  const auto plan = [](int64_t m, int64_t n, int64_t k, int64_t batch = 1) {
    return kernels::wgmma_plan(m, n, (k + 63) / 64, batch,
                               {.split = batch == 1, .ping_pong = true, .cluster_split_k = true});
  };
  EXPECT_EQ(plan(8192, 8192, 8192).tile, large);
  EXPECT_EQ(plan(8192, 8192, 8192).cluster, 2);
  EXPECT_EQ(plan(8192, 8192, 8192).splits, 1);
  EXPECT_EQ(plan(2048, 512, 12544).tile, cluster_split_k);  // 64 tiles of 128 x 128
  EXPECT_EQ(plan(2048, 512, 12544).cluster, 2);
  EXPECT_EQ(plan(256, 1000, 2048).cluster, 4);  // 16 tiles: ResNet-50's classifier
  EXPECT_NE(plan(256, 2048, 1000).cluster, 4);  // 32: its input's gradient
  EXPECT_NE(plan(512, 1024, 50176).cluster, 4);
  EXPECT_EQ(plan(1024, 1024, 1024).tile, small);
  EXPECT_EQ(plan(1024, 1024, 256).tile, small);
  EXPECT_EQ(kernels::wgmma_plan(1024, 1024, 16, 1, {.split = true}).tile, small);
  // Weight gradients of 1x1 convolutions, 64 to 256 channels and back.
  EXPECT_EQ(kernels::wgmma_plan(256, 64, 12544, 1, {.split = true, .be_tall = true, .be_broad = true}).tile, tall);
  EXPECT_EQ(kernels::wgmma_plan(64, 256, 12544, 1, {.split = true, .be_tall = true, .be_broad = true}).tile, broad);
  EXPECT_EQ(kernels::wgmma_plan(1000, 2048, 4, 1, {.split = true, .be_tall = true, .be_broad = true}).tile, medium);
  EXPECT_EQ(plan(64, 64, 64).tile, small);
  for (const int64_t n : {768, 2304, 3072}) {  // ViT-B, 64 images: 99 rows of tiles, of which 98 are pairs
    EXPECT_EQ(plan(64 * 197, n, 768).tile, ping_pong);
    EXPECT_EQ(plan(64 * 197, n, 768).cluster, 1);
    const WgmmaPlan plain = kernels::wgmma_plan(64 * 197, n, 768 / 64, 1);
    EXPECT_NE(plain.tile, ping_pong);
  }
  EXPECT_EQ(plan(384, 256, 768, 44).cluster, 1);  // 132 tiles are one turn, 88 clusters would be two
  EXPECT_GT(plan(64, 64, 65536).splits, 1);       // one tile, a deep sum
  EXPECT_EQ(plan(64, 64, 65536, 2).splits, 1);    // batches are not shared out
  EXPECT_EQ(plan(384, 384, 50432).tile, plan(384, 384, 50432).tile);
  const WgmmaPlan deep = plan(1152, 384, 50432);
  EXPECT_GE(int64_t{deep.share} * deep.splits, (50432 + 63) / 64);        // nothing is left out
  EXPECT_LT(int64_t{deep.share} * (deep.splits - 1), (50432 + 63) / 64);  // and no share is empty
}

/// Weight gradients have few tiles and long sums: their splits must leave few of an H100's 132 multiprocessors without
/// work in the last turn.
TEST(MatmulWgmma, SplitsFillTheChip) {
  const struct {
    int64_t m, n, k, batch;
  } sizes[] = {{3072, 768, 50432, 1},   // ViT-B, batch 256: fc1
               {768, 3072, 50432, 1},   // fc2
               {2304, 768, 50432, 1},   // q, k, v
               {3072, 1024, 50432, 1},  // ViT-L
               {512, 512, 12544, 9}};   // ResNet-50's last stage, 3x3: a slice for each tap
  for (const auto& [m, n, k, batch] : sizes) {
    SCOPED_TRACE(str(m, " x ", n, " x ", k, ", ", batch));
    const WgmmaPlan plan = kernels::wgmma_plan(m, n, (k + 63) / 64, batch, {.split = true});
    const int64_t tiles = (m + plan.rows() - 1) / plan.rows() * ((n + plan.columns() - 1) / plan.columns());
    const int64_t blocks = tiles * batch * plan.splits;
    EXPECT_GE(static_cast<double>(blocks), 0.8 * static_cast<double>((blocks + 131) / 132 * 132));
  }
}

/// A fused GELU of 16 bits is a short polynomial: right to the rounding of its result, and 2^-15 of it.
TEST(MatmulWgmma, GeluIsRightToTheRounding) {
  on_wgmma([](DeviceKind kind) {
    for (const DType dtype : {DType::bf16, DType::f16}) {
      constexpr int64_t kRows = 64, kColumns = 64;
      const auto x = uniform(kRows * kColumns, dtype, -9, 9);
      std::vector<double> identity(kColumns * kColumns);
      for (int64_t i = 0; i < kColumns; ++i) identity[i * (kColumns + 1)] = 1;
      const DeviceArray a(kind, dtype, {1, kRows, kColumns}, x), b(kind, dtype, {1, kColumns, kColumns}, identity);
      const DeviceArray y(kind, dtype, {1, kRows, kColumns});
      const WgmmaPlanScope scope({});
      kernels::matmul_fused(queue_on(kind), y, View::none(), a, b, View::none(), View::none(),
                            {1.0, kernels::Activation::gelu});
      EXPECT_EQ(scope.uses(), 1);
      const std::vector<double> got = y.host();
      const double rounding = dtype == DType::bf16 ? std::exp2(-8) : std::exp2(-11);
      const double least = dtype == DType::bf16 ? 0 : std::exp2(-25);  // half of the smallest f16
      for (size_t i = 0; i < x.size(); ++i) {
        const double want = 0.5 * x[i] * std::erfc(-x[i] / std::sqrt(2.0));
        // Beyond 7 the polynomial only follows: what is left is below 1e-11.
        ASSERT_NEAR(got[i], want, std::abs(want) * (rounding + std::exp2(-15)) + least + (x[i] < -7 ? 1e-12 : 0))
            << x[i] << ' ' << dtype;
      }
    }
  });
}

TEST(MatmulWgmma, GeluOfWhatIsNotFinite) {
  on_wgmma([](DeviceKind kind) {
    for (const DType dtype : {DType::bf16, DType::f16}) {
      const std::vector<double> zeros(64, 0.0);
      const DeviceArray a(kind, dtype, {1, 8, 8}, zeros), b(kind, dtype, {1, 8, 8}, zeros), y(kind, dtype, {1, 8, 8}),
          bias(kind, dtype, {8}, {INFINITY, -INFINITY, NAN, 0, -0.0, 30, -30, 60000});
      kernels::matmul_fused(queue_on(kind), y, View::none(), a, b, bias, View::none(), {1.0, Activation::gelu});
      const std::vector<double> got = y.host();
      EXPECT_EQ(got[0], INFINITY);
      EXPECT_EQ(got[1], 0);
      EXPECT_TRUE(std::isnan(got[2]));
      for (const int zero : {3, 4, 6}) EXPECT_EQ(got[zero], 0);
      EXPECT_EQ(got[5], 30);
      EXPECT_NEAR(got[7], 60000, 256);
    }
  });
}

TEST(MatmulWgmma, OddLinesTakeTheOtherKernel) {
  on_wgmma([](DeviceKind kind) {
    const auto a = uniform(10 * 9, DType::bf16), b = uniform(9 * 8, DType::bf16);
    const DeviceArray a_array(kind, DType::bf16, {1, 10, 9}, a), b_array(kind, DType::bf16, {1, 9, 8}, b);
    DeviceArray y(kind, DType::bf16, {1, 10, 8});
    const WgmmaPlanScope scope({});
    kernels::matmul(queue_on(kind), y, a_array, b_array, View::none(), {});
    std::vector<double> want(80);
    for (int i = 0; i < 80; ++i)
      for (int k = 0; k < 9; ++k) want[i] += a[i / 8 * 9 + k] * b[k * 8 + i % 8];
    EXPECT_TRUE(near(y.host(), want, tolerance(DType::bf16, 9)));
    EXPECT_EQ(scope.uses(), 0);
  });
}

}  // namespace
}  // namespace weft::tests
