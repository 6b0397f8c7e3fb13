// SPDX-License-Identifier: Apache-2.0
#include "kernels/ladder/matmul.cuh"

// 2. Tensor cores: one instruction of a warp multiplies a 16 x 16 by a 16 x 8 matrix.
//
//   mma.sync.m16n8k16      d[16x8] += a[16x16] b[16x8]: 2048 multiply-adds, each lane holding a few elements of each:
//
//        a: 8 bf16 a lane            b: 4 bf16 a lane       d: 4 f32 a lane       lane l: group g = l / 4, pair p = l %
//        4 g    [ a0    | a2   ]       2p, 2p+1  [ b0 ]       g    [ d0 d1 ]        a0: row g, columns 2p and 2p + 1;
//        a2 the g+8  [ a1    | a3   ]       2p+8, +9  [ b1 ]       g+8  [ d2 d3 ]        same 8 columns further; b and
//        d alike
//              k 0-7    k 8-15        of column g            columns 2p, 2p+1
//
// A warp owns 16 x 8 of y and loads its fragments straight from global memory: pairs along k lie side by side in a (4
// bytes), but one below the other in b (2 + 2 bytes).
//
// Saves: 64 multiply-add instructions of a warp (and 128 conversions) become one mma. Sectors per 2048 multiply-adds:
// 4 x 8 of a (each half used) + 4 x 4 of b (half used) = 48 instead of 64 x 3 = 192: 4 times fewer.
// Predicted: 4 times, as memory is the limit in both. Others: 32 TFLOP/s for a first kernel on an H100, 4% of cuBLAS
// (cudaforfun.substack.com, "Outperforming cuBLAS on H100").
//
// Limit: memory: 48 sectors (1536 bytes) per mma, which takes an A100's SM 2 clocks; L2 gives it some 64 bytes a clock.

namespace weft::kernels::cuda::matmul_bf16_2 {

constexpr int kTileM = 16, kTileN = 8, kTileK = 16, kWarps = 4;

__global__ void __launch_bounds__(kWarps * 32)
    matmul_kernel(bf16* y, const bf16* a, const bf16* b, int /*M*/, int N, int K) {
  const int lane = static_cast<int>(threadIdx.x) % 32, group = lane / 4, pair = lane % 4;
  const int m = static_cast<int>(blockIdx.y) * kTileM + group;
  const int first_n = (static_cast<int>(blockIdx.x) * kWarps + static_cast<int>(threadIdx.x) / 32) * kTileN;
  if (first_n >= N) return;  // the whole warp
  const auto pair_of_a = [&](int row, int k) { return *reinterpret_cast<const uint32_t*>(a + row * K + k); };
  const auto pair_of_b = [&](int k) {
    const bf16* const at = b + k * N + first_n + group;
    return uint32_t{at[0].bits} | uint32_t{at[N].bits} << 16;
  };
  float sum[4] = {};
  for (int k = 2 * pair; k < K; k += kTileK) {
    ptx::mma_m16n8k16<bf16>(sum, {pair_of_a(m, k), pair_of_a(m + 8, k), pair_of_a(m, k + 8), pair_of_a(m + 8, k + 8)},
                            {pair_of_b(k), pair_of_b(k + 8)});
  }
  bf16* const to = y + m * N + first_n + 2 * pair;
  *reinterpret_cast<uint32_t*>(to) = ptx::pack<bf16>(sum[0], sum[1]);
  *reinterpret_cast<uint32_t*>(to + 8 * N) = ptx::pack<bf16>(sum[2], sum[3]);
}

void run(const Queue& queue, const View& y, const View& a, const View& b) {
  const Matmul<bf16> p("matmul_bf16/2_tensor_cores", y, a, b, {kTileM, kTileN, kTileK});
  launch(queue, "matmul_bf16/2_tensor_cores", dim3(tiles(p.N, kTileN * kWarps), tiles(p.M, kTileM)), dim3(kWarps * 32),
         0, matmul_kernel, p.y, p.a, p.b, p.M, p.N, p.K);
}

const Rung<run> rung("matmul_bf16/2_tensor_cores", "mma.sync: 2048 multiply-adds in one instruction", Sizes::multiples);

}  // namespace weft::kernels::cuda::matmul_bf16_2
