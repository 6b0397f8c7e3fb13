// SPDX-License-Identifier: Apache-2.0
#include "tests/simt/matmul.h"

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/vec.cuh"

namespace weft::kernels::WEFT_DEVICE {

namespace {

__global__ void __launch_bounds__(256) tiled_matmul_kernel(float* c, const float* a, const float* b, int n) {
  constexpr int kTile = 64, kDepth = 16;
  __shared__ __align__(16) float a_tile[kDepth][kTile + 4];  // transposed
  WEFT_DYNAMIC_SHARED(float, b_tile);                        // [kDepth][kTile]
  const int t = static_cast<int>(threadIdx.x), column = t % 16 * 4, row = t / 16 * 4;
  const int first_row = static_cast<int>(blockIdx.y) * kTile, first_column = static_cast<int>(blockIdx.x) * kTile;
  float sum[4][4] = {};
  for (int k0 = 0; k0 < n; k0 += kDepth) {
    const auto av = Vec<float>::load(a + int64_t{first_row + t / 4} * n + k0 + t % 4 * 4);
    for (int i = 0; i < 4; ++i) a_tile[t % 4 * 4 + i][t / 4] = av[i];
    Vec<float>::load(b + int64_t{k0 + t / 16} * n + first_column + t % 16 * 4)
        .store(b_tile + t / 16 * kTile + t % 16 * 4);
    __syncthreads();
    for (int k = 0; k < kDepth; ++k) {
      const auto x = Vec<float>::load(&a_tile[k][row]), y = Vec<float>::load(b_tile + k * kTile + column);
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) sum[i][j] += x[i] * y[j];
    }
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i) {
    Vec<float> out;
    for (int j = 0; j < 4; ++j) out[j] = sum[i][j];
    out.store(c + int64_t{first_row + row + i} * n + first_column + column);
  }
}

/// Block: 64x64 of c, 4 warps of 32x32; tiles of depth 32 in two stages.
template <class T, MmaBug kBug>
__global__ void __launch_bounds__(128) mma_matmul_kernel(float* c, const T* a, const T* b, int n) {
  constexpr int kTile = 64, kDepth = 32, kStrideA = kDepth + 8, kStrideB = kTile + 8;
  WEFT_DYNAMIC_SHARED(T, shared);
  T* const a_tiles = shared;                         // [2][64][kStrideA]
  T* const b_tiles = shared + 2 * kTile * kStrideA;  // [2][32][kStrideB]
  const int t = static_cast<int>(threadIdx.x), lane = t % 32, warp = t / 32;
  const int first_row = static_cast<int>(blockIdx.y) * kTile, first_column = static_cast<int>(blockIdx.x) * kTile;
  auto load = [&](int stage, int k0) {
    for (int i = t; i < kTile * kDepth / 8; i += 128) {
      const int row = i / 4, column = i % 4 * 8;
      ptx::cp_async<16>(a_tiles + (stage * kTile + row) * kStrideA + column,
                        a + int64_t{first_row + row} * n + k0 + column);
    }
    for (int i = t; i < kDepth * kTile / 8; i += 128) {
      const int row = i / 8, column = i % 8 * 8;
      ptx::cp_async<16>(b_tiles + (stage * kDepth + row) * kStrideB + column,
                        b + int64_t{k0 + row} * n + first_column + column);
    }
  };
  float sum[2][4][4] = {};
  load(0, 0);
  ptx::cp_async_commit();
  for (int k0 = 0; k0 < n; k0 += kDepth) {
    const int stage = k0 / kDepth % 2;
    if (k0 + kDepth < n) load(stage ^ 1, k0 + kDepth);
    ptx::cp_async_commit();
    ptx::cp_async_wait_group<kBug == MmaBug::waits_for_too_few ? 2 : 1>();
    __syncthreads();
    for (int k = 0; k < kDepth; k += 16) {
      uint32_t x[2][4], y[2][4];
      for (int i = 0; i < 2; ++i) {
        const int row = warp / 2 * 32 + i * 16 + lane % 16;
        ptx::ldmatrix_x4(x[i], a_tiles + (stage * kTile + row) * kStrideA + k + lane / 16 * 8);
      }
      for (int j = 0; j < 2; ++j) {
        const int column = warp % 2 * 32 + j * 16 + lane / 16 * 8;
        ptx::ldmatrix_x4_trans(y[j], b_tiles + (stage * kDepth + k + lane % 16) * kStrideB + column);
      }
      for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 4; ++j) {
          const uint32_t pair[2] = {y[j / 2][j % 2 * 2], y[j / 2][j % 2 * 2 + 1]};
          ptx::mma_m16n8k16<T>(sum[i][j], x[i], pair);
        }
    }
    if (kBug != MmaBug::no_barrier_before_overwriting) __syncthreads();
  }
  if (kBug == MmaBug::exits_without_waiting) {
    load(0, 0);
    ptx::cp_async_commit();
  }
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 4; ++j)
      for (int r = 0; r < 4; ++r) {
        const int row = first_row + warp / 2 * 32 + i * 16 + lane / 4 + r / 2 * 8;
        const int column = first_column + warp % 2 * 32 + j * 8 + lane % 4 * 2 + r % 2;
        c[int64_t{row} * n + column] = sum[i][j][r];
      }
}

__global__ void tf32_matmul_kernel(float* c, const float* a, const float* b, int n) {
  const int lane = ptx::lane_id(), group = lane / 4, pair = lane % 4;
  const int row = static_cast<int>(blockIdx.y) * 16 + group, column = static_cast<int>(blockIdx.x) * 8;
  float sum[4] = {};
  for (int k = 0; k < n; k += 8) {
    uint32_t x[4], y[2];
    for (int r = 0; r < 4; ++r) x[r] = ptx::to_tf32(a[int64_t{row + r % 2 * 8} * n + k + pair + r / 2 * 4]);
    for (int r = 0; r < 2; ++r) y[r] = ptx::to_tf32(b[int64_t{k + pair + r * 4} * n + column + group]);
    ptx::mma_m16n8k8_tf32(sum, x, y);
  }
  for (int r = 0; r < 4; ++r) c[int64_t{row + r / 2 * 8} * n + column + pair * 2 + r % 2] = sum[r];
}

}  // namespace

void tiled_matmul(const Queue& queue, float* c, const float* a, const float* b, int n) {
  const unsigned tiles = static_cast<unsigned>(n / 64);
  launch(queue, "tiled_matmul", Grid{tiles, tiles}, Block{256}, 16 * 64 * sizeof(float), tiled_matmul_kernel, c, a, b,
         n);
}

template <class T>
void mma_matmul(const Queue& queue, float* c, const T* a, const T* b, int n, MmaBug bug) {
  const unsigned tiles = static_cast<unsigned>(n / 64);
  const size_t shared = 2 * (64 * 40 + 32 * 72) * sizeof(T);
  const Grid grid{tiles, tiles};
  switch (bug) {
    case MmaBug::none:
      return launch(queue, "mma_matmul", grid, Block{128}, shared, mma_matmul_kernel<T, MmaBug::none>, c, a, b, n);
    case MmaBug::waits_for_too_few:
      return launch(queue, "mma_matmul", grid, Block{128}, shared, mma_matmul_kernel<T, MmaBug::waits_for_too_few>, c,
                    a, b, n);
    case MmaBug::no_barrier_before_overwriting:
      return launch(queue, "mma_matmul", grid, Block{128}, shared,
                    mma_matmul_kernel<T, MmaBug::no_barrier_before_overwriting>, c, a, b, n);
    case MmaBug::exits_without_waiting:
      return launch(queue, "mma_matmul", grid, Block{128}, shared, mma_matmul_kernel<T, MmaBug::exits_without_waiting>,
                    c, a, b, n);
  }
}
template void mma_matmul(const Queue&, float*, const bf16*, const bf16*, int, MmaBug);
template void mma_matmul(const Queue&, float*, const f16*, const f16*, int, MmaBug);

void tf32_matmul(const Queue& queue, float* c, const float* a, const float* b, int n) {
  const unsigned size = static_cast<unsigned>(n);
  launch(queue, "tf32_matmul", Grid{size / 8, size / 16}, Block{32}, 0, tf32_matmul_kernel, c, a, b, n);
}

}  // namespace weft::kernels::WEFT_DEVICE
