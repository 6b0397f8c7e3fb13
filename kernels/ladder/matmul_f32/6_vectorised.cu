// SPDX-License-Identifier: Apache-2.0
#include "kernels/ladder/matmul.cuh"

// 6. Vectorised: every access moves 16 bytes.
//
// A thread loads 4 neighbours of a and of b at once (ld.global.v4). To read its 8 values of a from shared memory as two
// vectors as well, they must lie side by side: the tile of a is turned on its way in.
//
//     a in memory: 4 along k               tile_a[k][m]: k … k+3 go to four lines
//       m  [k k+1 k+2 k+3]   ---->     line k    . . x . .        then  x[0..3] = one read of line k
//                                      line k+1  . . x . .              x[4..7] = one more
//                                      line k+2  . . x . .
//                                      line k+3  . . x . .
//
// Saves: instructions. 16 reads of 4 bytes per k become 4 of 16 bytes; the 8 global loads of a step become 2. The wide
// reads also take most conflicts away: 48 wavefronts per k and warp become 20 (8 for each of the two of b, 2 for each
// of a). Predicted: 48 / 20 = 2.4 times, if shared memory is all that limits step 5. Others: vectorising gave 74.3%
// -> 78.4% of cuBLAS, in another order of steps (Boehm).
//
// Limit: the bank conflicts that are left. A quarter of a warp (8 lanes, what passes at once with 16 bytes each) reads
// b at distances of 32 bytes: 8 x 32 = 256 bytes, so two lanes share each bank. And in the turned store of a, lanes 2i
// and 2i+1 hold the same m: the same bank, different lines.

namespace weft::kernels::cuda::matmul_f32_6 {

constexpr int kTileM = 128, kTileN = 128, kTileK = 8, kSide = 8;
constexpr int kAcross = kTileN / kSide, kThreads = kTileM / kSide * kAcross;
using Vec4 = Vec<float, 4>;

__global__ void __launch_bounds__(kThreads)
    matmul_kernel(float* y, const float* a, const float* b, int /*M*/, int N, int K) {
  __shared__ __align__(16) float tile_a[kTileK][kTileM], tile_b[kTileK][kTileN];
  const int thread = static_cast<int>(threadIdx.x);
  const int row = thread / kAcross * kSide, column = thread % kAcross * kSide;
  const int first_m = static_cast<int>(blockIdx.y) * kTileM, first_n = static_cast<int>(blockIdx.x) * kTileN;
  const int a_m = thread / (kTileK / 4), a_k = thread % (kTileK / 4) * 4;  // the 4 elements that this thread loads
  const int b_k = thread / (kTileN / 4), b_n = thread % (kTileN / 4) * 4;
  float sum[kSide][kSide] = {};
  for (int k0 = 0; k0 < K; k0 += kTileK) {
    const Vec4 from_a = Vec4::load(a + (first_m + a_m) * K + k0 + a_k);
    const Vec4 from_b = Vec4::load(b + (k0 + b_k) * N + first_n + b_n);
    WEFT_UNROLL
    for (int e = 0; e < 4; ++e) tile_a[a_k + e][a_m] = from_a[e];
    from_b.store(&tile_b[b_k][b_n]);
    __syncthreads();
    for (int k = 0; k < kTileK; ++k) {
      Vec4 x[2], w[2];
      WEFT_UNROLL
      for (int half = 0; half < 2; ++half) {
        x[half] = Vec4::load(&tile_a[k][row + half * 4]);
        w[half] = Vec4::load(&tile_b[k][column + half * 4]);
      }
      WEFT_UNROLL
      for (int i = 0; i < kSide; ++i) WEFT_UNROLL
      for (int j = 0; j < kSide; ++j) sum[i][j] += x[i / 4][i % 4] * w[j / 4][j % 4];
    }
    __syncthreads();
  }
  WEFT_UNROLL
  for (int i = 0; i < kSide; ++i) WEFT_UNROLL
  for (int half = 0; half < 2; ++half) {
    const float* s = sum[i] + half * 4;
    Vec4{{s[0], s[1], s[2], s[3]}}.store(y + (first_m + row + i) * N + first_n + column + half * 4);
  }
}

void run(const Queue& queue, const View& y, const View& a, const View& b) {
  const Matmul<float> p("matmul_f32/6_vectorised", y, a, b, {kTileM, kTileN, kTileK});
  launch(queue, "matmul_f32/6_vectorised", dim3(tiles(p.N, kTileN), tiles(p.M, kTileM)), dim3(kThreads), 0,
         matmul_kernel, p.y, p.a, p.b, p.M, p.N, p.K);
}

const Rung<run> rung("matmul_f32/6_vectorised", "16 bytes per access; a is turned on its way in", Sizes::multiples);

}  // namespace weft::kernels::cuda::matmul_f32_6
