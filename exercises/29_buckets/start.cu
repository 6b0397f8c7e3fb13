// SPDX-License-Identifier: Apache-2.0
// One step on each rank: gradients, their sums over all ranks, the optimizer. Right, but nothing overlaps.
#include <nccl.h>

/// The model of a layer's backward: gradient[i] = (layer + 1) x[i].
__global__ void gradient_kernel(float* gradient, const float* x, int layer, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) gradient[i] = (layer + 1) * x[i];
}

/// The step of the optimizer: w -= the gradients of all layers.
__global__ void step_kernel(float* w, const float* gradients, int layers, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int layer = 0; i < n && layer < layers; ++layer) w[i] -= gradients[layer * n + i];
}

void train_step(const float* x, float* w, float* gradients, int layers, int n, ncclComm_t comm, cudaStream_t compute,
                cudaStream_t network) {
  for (int layer = layers - 1; layer >= 0; --layer) {
    float* const gradient = gradients + layer * n;
    gradient_kernel<<<(n + 255) / 256, 256, 0, compute>>>(gradient, x, layer, n);
    ncclAllReduce(gradient, gradient, n, ncclFloat, ncclSum, comm, compute);
  }
  step_kernel<<<(n + 255) / 256, 256, 0, compute>>>(w, gradients, layers, n);
}
