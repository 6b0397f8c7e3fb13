// SPDX-License-Identifier: Apache-2.0
constexpr int kDim = 32, kKeys = 32, kQueries = 8;

/// A block has 8 queries, a warp each, and goes over tiles of 32 keys. A lane computes the score of one key of the
/// tile; then the lane adds to a column of the output.
__global__ void attention_kernel(const float* q, const float* k, const float* v, float* out, int length) {
  __shared__ float tile_k[kKeys][kDim + 1], tile_v[kKeys][kDim], queries[kQueries][kDim];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, query = blockIdx.x * kQueries + warp;
  queries[warp][lane] = query < length ? q[query * kDim + lane] * rsqrtf(kDim) : 0.0f;
  float most = -INFINITY, sum = 0, column = 0;
  for (int first = 0; first < length; first += kKeys) {
    for (int row = warp; row < kKeys; row += kQueries) {
      const bool inside = first + row < length;
      tile_k[row][lane] = inside ? k[(first + row) * kDim + lane] : 0.0f;
      tile_v[row][lane] = inside ? v[(first + row) * kDim + lane] : 0.0f;
    }
    __syncthreads();
    float score = 0;
    for (int d = 0; d < kDim; ++d) score += queries[warp][d] * tile_k[lane][d];
    if (first + lane >= length) score = -INFINITY;
    float now = fmaxf(most, score);
    for (int step = 16; step > 0; step /= 2) now = fmaxf(now, __shfl_xor_sync(0xffffffff, now, step));
    const float shrink = expf(most - now), weight = expf(score - now);
    sum = sum * shrink + weight;
    column *= shrink;
    for (int key = 0; key < kKeys; ++key) column += __shfl_sync(0xffffffff, weight, key) * tile_v[key][lane];
    most = now;
    __syncthreads();
  }
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
  if (query < length) out[query * kDim + lane] = column / sum;
}

void attention(const float* q, const float* k, const float* v, float* out, int length) {
  attention_kernel<<<(length + kQueries - 1) / kQueries, kQueries * 32>>>(q, k, v, out, length);
}
