// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <driver_types.h>
#include <vector_types.h>

#include "emulator/cuda/kernels.h"
#include "emulator/cuda/work.h"

namespace emulator::cuda {

/// A launch's parameters, from any of the calls.
struct LaunchRequest {
  const void* handle = nullptr;  ///< a host stub, a cudaKernel_t or a CUfunction
  dim3 grid, block;
  dim3 cluster{0, 0, 0};  ///< 0: none asked for
  size_t shared = 0;
  void** arguments = nullptr;
  void** extra = nullptr;  ///< the driver's packed form, instead of arguments
  bool cooperative = false;
  bool programmatic = false;    ///< cudaLaunchAttributeProgrammaticStreamSerialization
  cudaEvent_t event = nullptr;  ///< recorded after the kernel
};

/// Reads cudaLaunchAttributes, which CUlaunchAttributes are too. Errors: Error.
void read_attributes(const cudaLaunchAttribute* attributes, unsigned count, LaunchRequest& request);
/// Checks the launch against the kernel and the GPU, and copies its arguments. Errors: Error.
std::shared_ptr<const Work> make_launch(const LaunchRequest& request, int device);
void launch_kernel(const LaunchRequest& request, cudaStream_t stream);

int blocks_per_processor(const Function& function, int threads, size_t dynamic_shared);
int active_clusters(const Function& function, const LaunchRequest& request);
size_t available_dynamic_shared(const Function& function, int blocks, int threads);

}  // namespace emulator::cuda
