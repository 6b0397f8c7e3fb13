// SPDX-License-Identifier: Apache-2.0
#include "kernels/ladder/attention/attention.cuh"

// 3. Tensor cores: both products by mma.sync, and the scores pass from one to the other in registers.
//
//     block: 64 queries, 4 warps of 16; 64 keys at a time            one warp
//
//       s[16,64] = q[16,64] k[64,64]^T     8 x 4 mma        lane holds, of rows g and g + 8: the columns 2p, 2p + 1 of
//       each 8 p = exp(s - most)                  in registers     row maximum: over 16 values, then over the 4 lanes
//       of the row y[16,64] += p[16,64] v[64,64]      4 x 8 mma        p's registers are laid out as mma
//       wants its left
//                                                           operand in: two results of 8 columns are one operand of 16
//
// That last line makes the kernel fast: the scores need no shared memory at all (FlashAttention-2, T. Dao, arXiv
// 2307.08691: split queries over warps, not keys). ldmatrix turns v on its way (.trans); k lies along D as wanted.
// Powers of 2 instead of e: the scale takes log2(e) with it.
//
// Saves: 64 x 64 x 64 x 2 multiply-adds of a tile, 16384 instructions of a warp, become 64 mma of each of 4 warps. The
// rest on the ordinary pipes: an exponential, a maximum and an addition per score. Predicted: H100: 16 exponentials
// per clock and SM, 4096 scores of a tile: 256 clocks; the 256 mma take 256 clocks (2048 multiply-adds each, one per
// clock): as much again. Others: FlashAttention-2 reaches 230 TFLOP/s on an A100 (73%, D = 128), 35% of an H100's peak.
//
// Limit: loading, exponentials and products are serialised.

namespace weft::kernels::cuda::attention_3 {

constexpr int kWarps = 4, kQueries = 16 * kWarps, kKeys = 64, kThreads = kWarps * 32, kRuns = kHeadDim / 8;
constexpr int kTile = kKeys * kHeadDim;
constexpr unsigned kAllLanes = 0xffffffffu;

/// Offset in elements of run `run` (8 elements, 16 bytes) of a row in its tile.
__device__ int run_offset(int row, int run) { return (row * kRuns + (run ^ row % 8)) * 8; }

/// Starts to copy keys first … first + 63; those beyond the last are zeros.
__device__ void load_keys(bf16* tile, const bf16* from, int first, int L, int thread) {
  for (int i = thread; i < kKeys * kRuns; i += kThreads) {
    const bool inside = first + i / kRuns < L;
    ptx::cp_async_zfill<16>(tile + run_offset(i / kRuns, i % kRuns), inside ? from + first * kHeadDim + i * 8 : from,
                            inside ? 16 : 0);
  }
}

__global__ void __launch_bounds__(kThreads)
    attention_kernel(bf16* y, const bf16* q, const bf16* k, const bf16* v, int L, float scale_log2e) {
  bf16* const tile_k = dynamic_shared<bf16>();
  bf16* const tile_v = tile_k + kTile;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, group = lane / 4, pair = lane % 4;
  const int64_t head = static_cast<int64_t>(blockIdx.y) * L * kHeadDim;
  const int i = static_cast<int>(blockIdx.x) * kQueries + thread / 32 * 16 + group;  // and i + 8

  uint32_t query[kHeadDim / 16][4];
  WEFT_UNROLL
  for (int d = 0; d < kHeadDim / 16; ++d) WEFT_UNROLL
  for (int r = 0; r < 4; ++r) {
    const int row = i + r % 2 * 8;  // rows beyond the last are zeros, and not stored
    const bf16* const from = q + head + row * kHeadDim + d * 16 + r / 2 * 8 + pair * 2;
    query[d][r] = row < L ? *reinterpret_cast<const uint32_t*>(from) : 0;
  }

  float out[kHeadDim / 8][4] = {}, most[2] = {-INFINITY, -INFINITY}, sum[2] = {};
  for (int first = 0; first < L; first += kKeys) {
    load_keys(tile_k, k + head, first, L, thread);
    load_keys(tile_v, v + head, first, L, thread);
    ptx::cp_async_wait_all();
    __syncthreads();

    float s[kKeys / 8][4] = {};
    WEFT_UNROLL
    for (int d = 0; d < kHeadDim / 16; ++d) WEFT_UNROLL
    for (int j = 0; j < kKeys / 16; ++j) {
      uint32_t b[4];
      ptx::ldmatrix_x4(b, tile_k + run_offset(j * 16 + lane / 16 * 8 + lane % 8, d * 2 + lane / 8 % 2));
      ptx::mma_m16n8k16<bf16>(s[2 * j], query[d], {b[0], b[1]});
      ptx::mma_m16n8k16<bf16>(s[2 * j + 1], query[d], {b[2], b[3]});
    }

    WEFT_UNROLL
    for (int half = 0; half < 2; ++half) {  // rows i and i + 8
      float next = most[half];
      WEFT_UNROLL
      for (int e = 0; e < kKeys / 4; ++e) {
        float& score = s[e / 2][half * 2 + e % 2];
        score = first + e / 2 * 8 + pair * 2 + e % 2 < L ? score * scale_log2e : -INFINITY;
        next = fmaxf(next, score);
      }
      for (int d = 1; d < 4; d *= 2) next = fmaxf(next, __shfl_xor_sync(kAllLanes, next, d));
      const float shrink = ptx::exp2_approx(most[half] - next);
      most[half] = next;
      sum[half] *= shrink;
      WEFT_UNROLL
      for (int e = 0; e < kKeys / 4; ++e) {
        float& score = s[e / 2][half * 2 + e % 2];
        score = ptx::exp2_approx(score - next);
        sum[half] += score;
      }
      WEFT_UNROLL
      for (int d = 0; d < kHeadDim / 8; ++d) WEFT_UNROLL
      for (int e = 0; e < 2; ++e) out[d][half * 2 + e] *= shrink;
    }

    WEFT_UNROLL
    for (int j = 0; j < kKeys / 16; ++j) {
      const auto& left = s[2 * j];
      const auto& right = s[2 * j + 1];
      const uint32_t p[4] = {ptx::pack<bf16>(left[0], left[1]), ptx::pack<bf16>(left[2], left[3]),
                             ptx::pack<bf16>(right[0], right[1]), ptx::pack<bf16>(right[2], right[3])};
      WEFT_UNROLL
      for (int d = 0; d < kHeadDim / 16; ++d) {
        uint32_t b[4];
        ptx::ldmatrix_x4_trans(b, tile_v + run_offset(j * 16 + lane % 16, d * 2 + lane / 16));
        ptx::mma_m16n8k16<bf16>(out[2 * d], p, {b[0], b[1]});
        ptx::mma_m16n8k16<bf16>(out[2 * d + 1], p, {b[2], b[3]});
      }
    }
    __syncthreads();
  }

  WEFT_UNROLL
  for (int half = 0; half < 2; ++half) {
    for (int d = 1; d < 4; d *= 2) sum[half] += __shfl_xor_sync(kAllLanes, sum[half], d);
    const int row = i + half * 8;
    if (row >= L) continue;
    WEFT_UNROLL
    for (int d = 0; d < kHeadDim / 8; ++d)
      *reinterpret_cast<uint32_t*>(y + head + row * kHeadDim + d * 8 + pair * 2) =
          ptx::pack<bf16>(out[d][half * 2] / sum[half], out[d][half * 2 + 1] / sum[half]);
  }
}

void run(const Queue& queue, const View& y, const View& q, const View& k, const View& v) {
  const Attention a("attention/3_tensor_cores", y, q, k, v);
  launch(queue, "attention/3_tensor_cores", dim3(tiles(a.L, kQueries), static_cast<unsigned>(a.G)), dim3(kThreads),
         2 * kTile * sizeof(bf16), attention_kernel, a.y, a.q, a.k, a.v, a.L, a.scale * 1.4426950408889634f);
}

const Rung<run> rung("attention/3_tensor_cores", "both products by mma; scores pass between them in registers");

}  // namespace weft::kernels::cuda::attention_3
