// SPDX-License-Identifier: Apache-2.0
// A program of the driver's interface alone, as those of NVRTC are: of the runtime that nvcc links nothing is used.
#include <cuda.h>

int main() {
  int devices = 0;
  return cuInit(0) == CUDA_SUCCESS && cuDeviceGetCount(&devices) == CUDA_SUCCESS && devices > 0 ? 0 : 1;
}
