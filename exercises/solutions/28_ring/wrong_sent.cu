// SPDX-License-Identifier: Apache-2.0
// A chain: the sum goes from rank to rank, and back. The ranks in the middle send all numbers twice.
#include <nccl.h>

__global__ void add_kernel(float* to, const float* from, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] += from[i];
}

void all_reduce(float* data, float* scratch, int n, int rank, int ranks, ncclComm_t comm, cudaStream_t stream) {
  if (rank > 0) {
    ncclRecv(scratch, n, ncclFloat, rank - 1, comm, stream);
    add_kernel<<<(n + 255) / 256, 256, 0, stream>>>(data, scratch, n);
  }
  if (rank < ranks - 1) {
    ncclSend(data, n, ncclFloat, rank + 1, comm, stream);
    ncclRecv(data, n, ncclFloat, rank + 1, comm, stream);
  }
  if (rank > 0) ncclSend(data, n, ncclFloat, rank - 1, comm, stream);
}
