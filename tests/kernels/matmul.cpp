// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/matmul.h"

#include <omp.h>

#include <cmath>

#include "kernels/cuda/gemm/gemm_plan.h"
#include "kernels/half.h"
#include "kernels/runtime/capability_scope.h"
#include "tests/support/compare.h"
#include "tests/support/devices.h"
#include "tests/support/random_values.h"

namespace weft::tests {
namespace {

using kernels::Grad;
using kernels::View;

struct Case {
  int64_t B, M, N, K;
  DType in, out;
  bool transpose_a = false, transpose_b = false, broadcast_b = false, bias = false;
  double alpha = 1;
  Grad grad = Grad::overwrite;
};

/// A factor [B, rows, columns], stored transposed or not; a broadcast factor has one matrix and batch stride 0.
View factor(const DeviceArray& array, const Case& c, bool transposed, bool broadcast, int64_t rows, int64_t columns) {
  View view = array.view();
  view.sizes = {c.B, rows, columns};
  view.strides = {broadcast ? 0 : rows * columns, transposed ? 1 : columns, transposed ? rows : 1};
  return view;
}

void check(DeviceKind kind, const Case& c) {
  SCOPED_TRACE(str("B ", c.B, " M ", c.M, " N ", c.N, " K ", c.K, " ", c.in, "->", c.out, " ta ", c.transpose_a, " tb ",
                   c.transpose_b, " broadcast ", c.broadcast_b, " bias ", c.bias, " accumulate ",
                   c.grad == Grad::accumulate, " on ", name(kind)));
  const int64_t b_batches = c.broadcast_b ? 1 : c.B;
  const auto a = uniform(c.B * c.M * c.K, c.in), b = uniform(b_batches * c.K * c.N, c.in),
             bias = uniform(c.N, c.out, 2, 3);
  const auto old = uniform(c.B * c.M * c.N, c.out, 2, 3);  // one product must not cancel the old values
  const DeviceArray a_array(kind, c.in, {c.B, c.M, c.K}, a), b_array(kind, c.in, {b_batches, c.K, c.N}, b);
  const DeviceArray bias_array(kind, c.out, {c.N}, bias);
  DeviceArray y(kind, c.out, {c.B, c.M, c.N});
  if (c.grad == Grad::accumulate) y.write(old);
  kernels::matmul(queue_on(kind), y, factor(a_array, c, c.transpose_a, false, c.M, c.K),
                  factor(b_array, c, c.transpose_b, c.broadcast_b, c.K, c.N), c.bias ? bias_array.view() : View::none(),
                  {c.alpha, c.grad});
  std::vector<double> want(old.size()), sizes(old.size());  // a sum may cancel: its size is that of a random walk
  for (int64_t n = 0; n < c.B; ++n)
    for (int64_t i = 0; i < c.M; ++i)
      for (int64_t j = 0; j < c.N; ++j) {
        double sum = 0, squares = 0;
        for (int64_t k = 0; k < c.K; ++k) {
          const double term = a[n * c.M * c.K + (c.transpose_a ? k * c.M + i : i * c.K + k)] *
                              b[(c.broadcast_b ? 0 : n) * c.K * c.N + (c.transpose_b ? j * c.K + k : k * c.N + j)];
          sum += term;
          squares += term * term;
        }
        const int64_t at = (n * c.M + i) * c.N + j;
        want[at] = c.alpha * sum + (c.bias ? bias[j] : 0) + (c.grad == Grad::accumulate ? old[at] : 0);
        sizes[at] = std::max(std::abs(want[at]), std::abs(c.alpha) * std::sqrt(squares));
      }
  EXPECT_TRUE(near(y.host(), want, tolerance(c.out, c.K), sizes));
}

TEST(Matmul, EqualsReferenceInEveryLayout) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16})
      for (const bool transpose_a : {false, true})
        for (const bool transpose_b : {false, true})
          check(kind, {pick(1, 3), pick(1, 70), pick(1, 70), pick(1, 200), dtype, dtype, transpose_a, transpose_b});
}

TEST(Matmul, SizesFromNothingToOdd) {
  const int64_t sizes[][4] = {{1, 0, 3, 4},    {1, 3, 0, 4},    {1, 3, 4, 0},    {0, 3, 4, 5},     {1, 1, 1, 1},
                              {1, 1, 37, 129}, {1, 129, 1, 37}, {1, 127, 65, 1}, {2, 33, 31, 257}, {5, 7, 3, 11}};
  for (const DeviceKind kind : test_devices())
    for (const auto& [B, M, N, K] : sizes)
      for (const DType dtype : {DType::f32, DType::bf16})
        for (const bool bias : {false, true})
          for (const bool transpose : {false, true})
            check(kind, {B, M, N, K, dtype, dtype, transpose, !transpose, false, bias});
}

TEST(Matmul, VectorsAndMatrices) {
  const int64_t sizes[][4] = {{1, 1, 300, 77}, {1, 300, 1, 77},  {3, 1, 70, 33},
                              {3, 70, 1, 33},  {1, 1, 600, 515}, {1, 600, 1, 515}};
  for (const DeviceKind kind : test_devices())
    for (const auto& [B, M, N, K] : sizes)
      for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16})
        for (const bool transpose_a : {false, true})
          for (const bool transpose_b : {false, true})
            check(kind, {B, M, N, K, dtype, dtype, transpose_a, transpose_b, B > 1, transpose_a, 0.5,
                         transpose_b ? Grad::accumulate : Grad::overwrite});
}

// Where a library's tiled kernels have ragged edges: oneDNN 2.6's AMX products are wrong or crash for some of these.
TEST(Matmul, EdgesOfTiles) {
  const int64_t sizes[][3] = {{20, 54, 146},  {3, 58, 43},   {22, 59, 4},   {54, 112, 63},
                              {138, 123, 63}, {16, 16, 32},  {33, 48, 64},  {130, 64, 96},
                              {257, 80, 160}, {128, 65, 96}, {200, 96, 80}, {131, 112, 63}};
  for (const auto& [M, N, K] : sizes)
    for (const DType dtype : {DType::f32, DType::bf16})
      for (const bool transpose_a : {false, true})
        for (const bool transpose_b : {false, true})
          for (const bool bias : {false, true})
            for (const Grad grad : {Grad::overwrite, Grad::accumulate})
              check(DeviceKind::cpu,
                    {1, M, N, K, dtype, bias ? DType::f32 : dtype, transpose_a, transpose_b, false, bias, 1, grad});
}

TEST(Matmul, BiasAlphaAccumulateAndBroadcast) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16})
      for (const Grad grad : {Grad::overwrite, Grad::accumulate})
        for (const bool broadcast : {false, true})
          for (const bool bias : {false, true})
            check(kind, {3, 17, 23, 40, dtype, dtype, false, false, broadcast, bias, 0.5, grad});
}

TEST(Matmul, WholeVectorsAndAPartialStep) {   // lines of whole 16-byte units, a depth that no tile divides
  const kernels::CapabilityScope ampere(80);  // Hopper's kernel has tests of its own
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16})
      for (const Grad grad : {Grad::overwrite, Grad::accumulate})
        for (const bool transpose_a : {false, true})
          for (const bool transpose_b : {false, true})
            check(kind, {1, 40, 72, 88, dtype, dtype, transpose_a, transpose_b, false, true, 2, grad});
}

TEST(Matmul, HalvesIntoF32) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::bf16, DType::f16})
      check(kind, {2, 45, 33, 300, dtype, DType::f32, true, false, false, true, 1, Grad::accumulate});
}

TEST(Matmul, LargeEnoughForEveryThread) {
  for (const DeviceKind kind : test_devices())
    check(kind, {1, 260, 190, kind == DeviceKind::cpu ? 600 : 70, DType::f32, DType::f32, false, true});
}

// Sizes beside those of the CPU's blocks (kernels/cpu/gemm.cpp): strips of 6 or 12 rows, 48 rows at a time, panels of
// 16 or 32 columns, slices of 384 and 768.
TEST(MatmulOnCpu, EqualsReferenceAtTheEdgesOfItsBlocks) {
  const int64_t sizes[][3] = {{1, 1, 385},   {5, 15, 7},    {6, 16, 8},     {7, 17, 9},
                              {11, 31, 383}, {12, 32, 384}, {13, 33, 385},  {47, 8, 769},
                              {48, 129, 16}, {49, 769, 17}, {50, 800, 400}, {130, 64, 1153}};
  for (const auto& [M, N, K] : sizes)
    for (const DType dtype : {DType::f32, DType::f64, DType::f16})
      for (const bool transpose_a : {false, true})
        for (const bool transpose_b : {false, true})
          for (const bool bias : {false, true})
            check(DeviceKind::cpu, {1, M, N, K, dtype, dtype, transpose_a, transpose_b, false, bias, 0.5,
                                    bias ? Grad::overwrite : Grad::accumulate});
}

TEST(MatmulOnCpu, SameBitsWithAnyNumberOfThreads) {
  const int before = omp_get_max_threads();
  const int64_t B = 2, M = 130, N = 175, K = 700;  // fewer multiplications than those for which oneDNN is asked
  for (const DType dtype : {DType::f32, DType::f64}) {
    const DeviceArray a(DeviceKind::cpu, dtype, {B, M, K}, uniform(B * M * K, dtype)),
        b(DeviceKind::cpu, dtype, {B, K, N}, uniform(B * K * N, dtype));
    DeviceArray y(DeviceKind::cpu, dtype, {B, M, N});
    const auto run = [&](int threads) {
      omp_set_num_threads(threads);
      y.poison();
      kernels::matmul(queue_on(DeviceKind::cpu), y, a, b, View::none(), {});
      return y.host();
    };
    const auto alone = run(1);
    for (const int threads : {2, 3, 7, 16}) EXPECT_EQ(run(threads), alone) << threads;
  }
  omp_set_num_threads(before);
}

// As a decoder multiplies: the rows of several texts by a linear layer's weight.
TEST(MatmulOnCpu, FewRowsHaveTheBitsOfEachAlone) {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16})
    for (const int64_t K : {1, 31, 128, 769})
      for (const int64_t N : {1, 18, 300}) {
        constexpr int64_t kMost = 8;
        const DeviceArray x(DeviceKind::cpu, dtype, {kMost, K}, uniform(kMost * K, dtype)),
            w(DeviceKind::cpu, dtype, {N, K}, uniform(N * K, dtype)),
            bias(DeviceKind::cpu, dtype, {N}, uniform(N, dtype));
        const auto rows = [&](int64_t first, int64_t count) {
          View a = x, b = w;
          a.rank = b.rank = 3;
          a.sizes = {1, count, K};
          a.strides = {kMost * K, K, 1};
          a.data = static_cast<char*>(a.data) + static_cast<size_t>(first * K) * size_of(dtype);
          b.sizes = {1, K, N};
          b.strides = {K * N, 1, K};
          DeviceArray y(DeviceKind::cpu, dtype, {1, count, N});
          y.poison();
          kernels::matmul(queue_on(DeviceKind::cpu), y, a, b, bias, {});
          return y.host();
        };
        std::vector<double> alone;
        for (int64_t i = 0; i < kMost; ++i)
          for (const double value : rows(i, 1)) alone.push_back(value);
        for (const int64_t count : {2, 3, 8}) {
          const auto together = rows(0, count);
          EXPECT_TRUE(std::equal(together.begin(), together.end(), alone.begin()))
              << count << ' ' << dtype << ' ' << N << ' ' << K;
        }
      }
}

TEST(Matmul, PanelsOfTiles) {  // ten rows of tiles: a panel of eight and one of two, in both slices
  const kernels::CapabilityScope ampere(80);
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::f32, DType::bf16}) check(kind, {2, 300, 40, 9, dtype, dtype});
}

constexpr kernels::TileSize kLargeTiles[] = {kernels::TileSize::large, kernels::TileSize::wide, kernels::TileSize::tall,
                                             kernels::TileSize::flat};

// The tiles of large products, of 256 columns the last 44 and of 256 rows 136: depths of less than a step, of fewer
// steps than there are stages, and of more.
TEST(Matmul, LargeTiles) {
  const kernels::CapabilityScope ampere(80);
  for (const DeviceKind kind : test_devices())
    for (const kernels::TileSize size : kLargeTiles)
      for (const DType dtype : {DType::bf16, DType::f16})
        for (const bool transpose_a : {false, true})
          for (const bool transpose_b : {false, true}) {
            if (!kernels::has_tile<bf16>(size, !transpose_a)) continue;
            const kernels::TileScope scope(size);
            for (const int64_t K : {24, 72, 200})
              check(kind, {1, 136, 300, K, dtype, dtype, transpose_a, transpose_b, false, true});
          }
}

TEST(Matmul, SameBitsInEveryTile) {
  const kernels::CapabilityScope ampere(80);
  const int64_t M = 200, N = 264, K = 136;
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::bf16, DType::f16}) {
      const DeviceArray a(kind, dtype, {1, M, K}, uniform(M * K, dtype)),
          b(kind, dtype, {1, K, N}, uniform(K * N, dtype));
      DeviceArray y(kind, DType::f32, {1, M, N});
      const auto in = [&](kernels::TileSize size) {
        const kernels::TileScope scope(size);
        y.poison();
        kernels::matmul(queue_on(kind), y, a, b, View::none(), {});
        return y.host();
      };
      const auto small = in(kernels::TileSize::small);
      for (const kernels::TileSize size :
           {kernels::TileSize::medium, kernels::TileSize::large, kernels::TileSize::wide, kernels::TileSize::tall})
        EXPECT_EQ(in(size), small) << static_cast<int>(size) << " on " << name(kind);
    }
}

TEST(Matmul, PlansTiles) {
  using enum kernels::TileSize;
  const auto tile = [](int64_t m, int64_t n, int64_t k) { return kernels::choose_tile<bf16>(m, n, k, 1, true); };
  EXPECT_EQ(tile(8192, 8192, 8192), wide);
  EXPECT_EQ(tile(4096, 4096, 4096), wide);
  EXPECT_EQ(tile(64 * 197, 768, 3072), wide);
  EXPECT_EQ(tile(64 * 197, 3072, 768), large);  // a short sum
  EXPECT_EQ(tile(1408, 2560, 4096), large);     // 110 wide tiles: twice two rounds instead of three
  EXPECT_EQ(tile(8192, 128, 4096), medium);     // half of each wide tile would be empty
  EXPECT_EQ(tile(16384, 128, 4096), large);
  EXPECT_EQ(tile(256 * 56 * 56, 64, 576), tall);  // a convolution of 64 filters
  EXPECT_EQ(tile(32 * 28 * 28, 64, 576), medium);
  EXPECT_EQ(tile(256 * 56 * 56, 32, 576), small);
  EXPECT_EQ(kernels::choose_tile<bf16>(256 * 56 * 56, 64, 576, 1, /*a_along_k=*/false), medium);
  EXPECT_EQ(kernels::choose_tile<float>(256 * 56 * 56, 64, 576, 1, true), medium);
  EXPECT_EQ(kernels::choose_tile<float>(8192, 8192, 8192, 1, true), large);  // tf32: no registers
  EXPECT_EQ(kernels::choose_tile<double>(8192, 8192, 8192, 1, true), small);
}

// Weight gradients in whole rounds of an A100's 108 multiprocessors.
TEST(Matmul, PlansShares) {
  using enum kernels::TileSize;
  const auto expect = [](int64_t m, int64_t n, int64_t k, kernels::TileSize size, int64_t splits) {
    const kernels::SplitPlan plan = kernels::choose_split<bf16>(m, n, k, 1, /*a_along_k=*/false);
    EXPECT_EQ(plan.size, size) << m << " x " << n;
    EXPECT_EQ(plan.splits, splits) << m << " x " << n;
    EXPECT_EQ(plan.depth % 32, 0);
    EXPECT_GE(plan.depth * plan.splits, k);
    EXPECT_LT(plan.depth * (plan.splits - 1), k);
  };
  expect(64, 9 * 64, 256 * 56 * 56, flat, 86);   // 430 blocks, four on a multiprocessor
  expect(256, 9 * 256, 256 * 14 * 14, wide, 6);  // 108
  expect(512, 9 * 512, 256 * 7 * 7, wide, 3);    // 216
  expect(3072, 768, 64 * 197, wide, 3);          // 216
  const auto pays = [](int64_t m, int64_t n, int64_t k) {
    return kernels::split_pays<bf16>(kernels::choose_split<bf16>(m, n, k, 1, true),
                                     kernels::choose_tile<bf16>(m, n, k, 1, true), m, n, k);
  };
  EXPECT_TRUE(pays(2304, 768, 64 * 197));  // 108 tiles, each alone on a multiprocessor
  EXPECT_FALSE(pays(8192, 8192, 8192));
  EXPECT_FALSE(pays(64 * 197, 768, 3072));
  EXPECT_FALSE(pays(128, 128, 128));  // one launch
  const kernels::SplitPlan f32 = kernels::choose_split<float>(256, 2304, 50176, 1, false);
  EXPECT_EQ(f32.size, large);
  EXPECT_EQ(f32.splits, 7);  // for 36 tiles: two blocks for each of 128
}

TEST(Matmul, SaysWhatDoesNotFit) {
  const DeviceArray a(DeviceKind::cpu, DType::f32, {1, 2, 3}), y(DeviceKind::cpu, DType::f32, {1, 2, 2});
  EXPECT_EQ(error_text([&] { kernels::matmul(queue_on(DeviceKind::cpu), y, a, a, View::none(), {}); }),
            "matmul: expected [B,M,N] = [B,M,K] @ [B,K,N], got f32[1,2,2] = f32[1,2,3] @ f32[1,2,3]");
}

}  // namespace
}  // namespace weft::tests
