// SPDX-License-Identifier: Apache-2.0
// bins[v] = how many of the n bytes are v.

__global__ void histogram_kernel(const unsigned char* in, int n, unsigned* bins) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&bins[in[i]], 1u);
}

void histogram(const unsigned char* in, int n, unsigned* bins) {
  cudaMemset(bins, 0, 256 * sizeof(unsigned));
  histogram_kernel<<<(n + 255) / 256, 256>>>(in, n, bins);
}
