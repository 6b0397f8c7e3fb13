// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx/ptx_wgmma_fp8.cuh"
#include "tests/hopper/hopper.h"

namespace weft::kernels::cuda {

namespace {

using ptx::Along;

template <int N>
__device__ float* sum_at(float* d, int i) {
  const int t = static_cast<int>(threadIdx.x);
  const int row = t / 32 * 16 + t % 32 / 4 + i % 4 / 2 * 8, column = i / 4 * 8 + t % 4 * 2 + i % 2;
  return d + row * N + column;
}

template <class T, int N, Along kA, Along kB, bool kRegisters>
__global__ void __launch_bounds__(128) wgmma_kernel(WgmmaProblem p) {
  uint8_t* const tiles = dynamic_shared<uint8_t>();
  __shared__ ptx::Barrier barrier;
  uint8_t* const tile_b = tiles + (p.a.bytes + 1023) / 1024 * 1024;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&barrier, 1);
    ptx::mbarrier_init_fence();
    ptx::mbarrier_arrive_expect_tx(&barrier, p.a.bytes + p.b.bytes);
    ptx::bulk_load(tiles, p.a.image, p.a.bytes, &barrier);
    ptx::bulk_load(tile_b, p.b.image, p.b.bytes, &barrier);
  }
  __syncthreads();
  ptx::mbarrier_wait(&barrier, 0);
  float d[N / 2];
#pragma unroll
  for (int i = 0; i < N / 2; ++i) d[i] = p.accumulate ? *sum_at<N>(p.d, i) : 7.0f;
  uint32_t a[4][4];
  if (kRegisters) {
    const int t = static_cast<int>(threadIdx.x);
#pragma unroll
    for (int k = 0; k < 4; ++k)
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        const int row = t / 32 * 16 + t % 32 / 4 + r % 2 * 8, depth = 16 * k + t % 4 * 2 + r / 2 * 8;
        a[k][r] = uint32_t{p.a_values[row * 64 + depth]} | uint32_t{p.a_values[row * 64 + depth + 1]} << 16;
      }
  }
  ptx::wgmma_fence();
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const uint64_t b = ptx::wgmma_descriptor(tile_b + p.b.steps[k], p.b.swizzle, p.b.leading, p.b.stride);
    if constexpr (kRegisters)
      ptx::wgmma<T, N, kB>(d, a[k], b, p.accumulate || k > 0);
    else
      ptx::wgmma<T, N, kA, kB>(d, ptx::wgmma_descriptor(tiles + p.a.steps[k], p.a.swizzle, p.a.leading, p.a.stride), b,
                               p.accumulate || k > 0);
  }
  ptx::wgmma_commit();
  ptx::wgmma_wait<0>();
#pragma unroll
  for (int i = 0; i < N / 2; ++i) *sum_at<N>(p.d, i) = d[i];
}

template <class T, int N, Along kA, Along kB, bool kRegisters>
void run(const Queue& queue, const WgmmaProblem& p) {
  const size_t shared = static_cast<size_t>((p.a.bytes + 1023) / 1024 * 1024 + p.b.bytes);
  launch(queue, "wgmma_problem", 1, 128, shared, wgmma_kernel<T, N, kA, kB, kRegisters>, p);
}

template <class T, int N>
void run(const Queue& queue, const WgmmaProblem& p) {
  constexpr Along depth = Along::depth, rows = Along::rows;
  if (p.registers && p.along_rows_b) return run<T, N, depth, rows, true>(queue, p);
  if (p.registers) return run<T, N, depth, depth, true>(queue, p);
  if (p.along_rows_a && p.along_rows_b) return run<T, N, rows, rows, false>(queue, p);
  if (p.along_rows_a) return run<T, N, rows, depth, false>(queue, p);
  if (p.along_rows_b) return run<T, N, depth, rows, false>(queue, p);
  run<T, N, depth, depth, false>(queue, p);
}

template <Fp8 format>
void run_8_bits(const Queue& queue, const WgmmaProblem& p) {
  constexpr Along depth = Along::depth;
  if (p.n == 64) return run<Fp8Product<format>, 64, depth, depth, false>(queue, p);
  if (p.n == 128) return run<Fp8Product<format>, 128, depth, depth, false>(queue, p);
  run<Fp8Product<format>, 256, depth, depth, false>(queue, p);
}

}  // namespace

void wgmma_problem(const Queue& queue, const WgmmaProblem& p) {
  constexpr Along depth = Along::depth;
  if (p.dtype == DType::u8)
    return p.format == Fp8::e4m3 ? run_8_bits<Fp8::e4m3>(queue, p) : run_8_bits<Fp8::e5m2>(queue, p);
  if (p.dtype == DType::f32 && p.n == 64) return run<float, 64, depth, depth, false>(queue, p);
  if (p.dtype == DType::f32 && p.n == 128) return run<float, 128, depth, depth, false>(queue, p);
  if (p.dtype == DType::f32) return run<float, 256, depth, depth, false>(queue, p);
  if (p.dtype == DType::f16) return run<f16, 64>(queue, p);
  if (p.n == 8 && p.along_rows_a) return run<bf16, 8, Along::rows, Along::depth, false>(queue, p);
  if (p.n == 8) return run<bf16, 8, Along::depth, Along::depth, false>(queue, p);
  if (p.n == 32) return run<bf16, 32>(queue, p);
  if (p.n == 64) return run<bf16, 64>(queue, p);
  if (p.n == 96) return run<bf16, 96>(queue, p);
  if (p.n == 128) return run<bf16, 128>(queue, p);
  if (p.n == 192) return run<bf16, 192>(queue, p);
  run<bf16, 256>(queue, p);
}

}  // namespace weft::kernels::cuda
