// SPDX-License-Identifier: Apache-2.0
// out = softmax(q k^T / sqrt(32)) v: q, k, v and out [length][32] in row order. Right, with a matrix of scores in
// memory.

constexpr int kDim = 32;

__global__ void scores_kernel(const float* q, const float* k, float* scores, int length) {
  const int key = blockIdx.x * blockDim.x + threadIdx.x, query = blockIdx.y;
  if (key >= length) return;
  float sum = 0;
  for (int d = 0; d < kDim; ++d) sum += q[query * kDim + d] * k[key * kDim + d];
  scores[query * length + key] = sum * rsqrtf(kDim);
}

/// A warp per row.
__global__ void softmax_kernel(float* scores, int length) {
  float* const row = scores + blockIdx.x * length;
  float most = -INFINITY, sum = 0;
  for (int c = threadIdx.x; c < length; c += 32) most = fmaxf(most, row[c]);
  for (int step = 16; step > 0; step /= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffff, most, step));
  for (int c = threadIdx.x; c < length; c += 32) sum += expf(row[c] - most);
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
  for (int c = threadIdx.x; c < length; c += 32) row[c] = expf(row[c] - most) / sum;
}

__global__ void values_kernel(const float* weights, const float* v, float* out, int length) {
  float sum = 0;
  for (int key = 0; key < length; ++key) sum += weights[blockIdx.x * length + key] * v[key * kDim + threadIdx.x];
  out[blockIdx.x * kDim + threadIdx.x] = sum;
}

void attention(const float* q, const float* k, const float* v, float* out, int length) {
  float* scores;
  cudaMalloc(&scores, sizeof(float) * length * length);
  scores_kernel<<<dim3((length + 127) / 128, length), 128>>>(q, k, scores, length);
  softmax_kernel<<<length, 32>>>(scores, length);
  values_kernel<<<length, kDim>>>(scores, v, out, length);
  cudaFree(scores);
}
