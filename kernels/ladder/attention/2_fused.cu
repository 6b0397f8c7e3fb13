// SPDX-License-Identifier: Apache-2.0
#include "kernels/ladder/attention/attention.cuh"

// 2. Fused: one kernel walks over the keys and never stores a score (flash attention: T. Dao et al., arXiv 2205.14135).
//
//     keys, values:  tile 0    tile 1    tile 2 …           a thread owns one query: q[64] and y[64] in registers
//                    +----+    +----+    +----+
//     64 queries --> |    | -> |    | -> |    | -> y         for each key: s = q · k,  y = y exp(most - new) + exp(s -
//     new) v,
//                    +----+    +----+    +----+              sum likewise;  at the end  y / sum
//
// That is the online softmax of ladder softmax, step 2, with a vector beside the sum: when the maximum rises, what was
// added so far is scaled down. (Scaling needs no division until the end.)
//
// Saves: the L x L matrix, all of its five passes. k and v are read once per 64 queries instead: L / 64 x 2 L D x 2
// bytes a head: 16.8 MB at L = 2048, where the matrix moved 84 MB, and from L2. Predicted: from memory-bound to
// arithmetic-bound; the ordinary pipes do 69 GFLOP in 1.1 ms (H100: 62 TFLOP/s with one multiply-add per clock and
// lane, no better).
//
// Limit: the ordinary pipes, of which 64 threads a block fill few (128 and more registers each); 16 bytes from shared
// memory (one address for the whole warp) for every 4 multiply-adds.

namespace weft::kernels::cuda::attention_2 {

constexpr int kQueries = 64, kKeys = 32, kThreads = kQueries;
using Vec4 = Vec<float, 4>;
using Vec8 = Vec<bf16, 8>;

__global__ void __launch_bounds__(kThreads)
    attention_kernel(bf16* y, const bf16* q, const bf16* k, const bf16* v, int L, float scale) {
  __shared__ __align__(16) float tile_k[kKeys][kHeadDim], tile_v[kKeys][kHeadDim];
  const int thread = static_cast<int>(threadIdx.x), i = static_cast<int>(blockIdx.x) * kQueries + thread;
  const int64_t head = static_cast<int64_t>(blockIdx.y) * L * kHeadDim;
  const int own = i < L ? i : L - 1;  // threads without a query repeat another one and do not store
  float query[kHeadDim], out[kHeadDim];
  Vec8 part;
#pragma unroll
  for (int d = 0; d < kHeadDim; ++d) {
    if (d % 8 == 0) part = Vec8::load(q + head + own * kHeadDim + d);
    query[d] = from<float>(part[d % 8]) * scale;
    out[d] = 0;
  }
  float most = -INFINITY, sum = 0;
  for (int first = 0; first < L; first += kKeys) {
    const int keys = L - first < kKeys ? L - first : kKeys;
    for (int e = thread; e < keys * kHeadDim; e += kThreads) {
      tile_k[e / kHeadDim][e % kHeadDim] = from<float>(k[head + first * kHeadDim + e]);
      tile_v[e / kHeadDim][e % kHeadDim] = from<float>(v[head + first * kHeadDim + e]);
    }
    __syncthreads();
    for (int j = 0; j < keys; ++j) {
      float s = 0;
#pragma unroll
      for (int d = 0; d < kHeadDim; d += 4) {
        const Vec4 key = Vec4::load(&tile_k[j][d]);
        s += query[d] * key[0] + query[d + 1] * key[1] + query[d + 2] * key[2] + query[d + 3] * key[3];
      }
      if (s > most) {
        const float shrink = expf(most - s);
        sum *= shrink;
#pragma unroll
        for (int d = 0; d < kHeadDim; ++d) out[d] *= shrink;
        most = s;
      }
      const float weight = expf(s - most);
      sum += weight;
#pragma unroll
      for (int d = 0; d < kHeadDim; d += 4) {
        const Vec4 value = Vec4::load(&tile_v[j][d]);
        out[d] += weight * value[0];
        out[d + 1] += weight * value[1];
        out[d + 2] += weight * value[2];
        out[d + 3] += weight * value[3];
      }
    }
    __syncthreads();
  }
  if (i >= L) return;
#pragma unroll
  for (int d = 0; d < kHeadDim; ++d) {
    part[d % 8] = to<bf16>(out[d] / sum);
    if (d % 8 == 7) part.store(y + head + i * kHeadDim + d - 7);
  }
}

void run(const Queue& queue, const View& y, const View& q, const View& k, const View& v) {
  const Attention a("attention/2_fused", y, q, k, v);
  launch(queue, "attention/2_fused", dim3(tiles(a.L, kQueries), static_cast<unsigned>(a.G)), dim3(kThreads), 0,
         attention_kernel, a.y, a.q, a.k, a.v, a.L, a.scale);
}

const Rung<run> rung("attention/2_fused", "one kernel, an online softmax: no score is ever stored");

}  // namespace weft::kernels::cuda::attention_2
