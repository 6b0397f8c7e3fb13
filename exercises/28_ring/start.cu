// SPDX-License-Identifier: Apache-2.0
// data = the sum over all ranks of their data, n numbers; scratch holds n more. Right, but rank 0 does all the work.
#include <nccl.h>

__global__ void add_kernel(float* to, const float* from, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] += from[i];
}

void all_reduce(float* data, float* scratch, int n, int rank, int ranks, ncclComm_t comm, cudaStream_t stream) {
  if (rank != 0) {
    ncclSend(data, n, ncclFloat, 0, comm, stream);
    ncclRecv(data, n, ncclFloat, 0, comm, stream);
    return;
  }
  for (int other = 1; other < ranks; ++other) {
    ncclRecv(scratch, n, ncclFloat, other, comm, stream);
    add_kernel<<<(n + 255) / 256, 256, 0, stream>>>(data, scratch, n);
  }
  for (int other = 1; other < ranks; ++other) ncclSend(data, n, ncclFloat, other, comm, stream);
}
