// SPDX-License-Identifier: Apache-2.0
// Preloaded into a CUDA program by `weft-lab measure` (tools/lab/measure.py): times each launch by CUDA events, and
// appends `mangled name, blocks, threads of a block, milliseconds` to the file that WEFT_LAB_TIMES names, with tabs
// between. Each launch is waited for, so kernels of different streams do not overlap. Launches of a capture are not
// timed.
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <thread>

namespace {

std::mutex guard;  // held while a launch is timed, and by the maps' users

/// Names by the host's function, and host functions by the runtime's handle.
std::map<const void*, std::string>& names() {
  static auto* const found = new std::map<const void*, std::string>;  // registration happens before static constructors
  return *found;
}
std::map<const void*, const void*>& handles() {
  static auto* const found = new std::map<const void*, const void*>;
  return *found;
}

/// The runtime's function of this name, which our function of the same name hides.
template <class F>
F next(const char* name) {
  const auto found = reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
  if (!found) {
    std::fprintf(stderr, "weft-lab: measure: CUDA's runtime has no %s\n", name);
    std::_Exit(1);
  }
  return found;
}
#define WEFT_NEXT(name, ...) next<cudaError_t (*)(__VA_ARGS__)>(#name)

/// Holds a stream until the launch and both events are enqueued, so that the host's time between them is not measured.
/// A launch that waits for the device itself, as the first load of a module does, ends the hold after 5 ms.
struct Gate {
  std::atomic<bool> open = false;
};

void hold(void* gate) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(5);
  while (!static_cast<Gate*>(gate)->open && std::chrono::steady_clock::now() < until) std::this_thread::yield();
}

template <class Launch>
cudaError_t timed(const void* function, dim3 grid, dim3 block, cudaStream_t stream, Launch&& launch) {
  const std::lock_guard lock(guard);
  cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
  WEFT_NEXT(cudaStreamIsCapturing, cudaStream_t, cudaStreamCaptureStatus*)(stream, &capturing);
  if (capturing != cudaStreamCaptureStatusNone) return launch();
  cudaEvent_t begin, end;
  WEFT_NEXT(cudaEventCreate, cudaEvent_t*)(&begin);
  WEFT_NEXT(cudaEventCreate, cudaEvent_t*)(&end);
  Gate gate;
  const bool held =
      WEFT_NEXT(cudaLaunchHostFunc, cudaStream_t, cudaHostFn_t, void*)(stream, hold, &gate) == cudaSuccess;
  WEFT_NEXT(cudaEventRecord, cudaEvent_t, cudaStream_t)(begin, stream);
  const cudaError_t status = launch();
  WEFT_NEXT(cudaEventRecord, cudaEvent_t, cudaStream_t)(end, stream);
  gate.open = true;
  float milliseconds = 0;
  const bool ended = WEFT_NEXT(cudaEventSynchronize, cudaEvent_t)(end) == cudaSuccess && held;
  if (status == cudaSuccess && ended &&
      WEFT_NEXT(cudaEventElapsedTime, float*, cudaEvent_t, cudaEvent_t)(&milliseconds, begin, end) == cudaSuccess) {
    const auto handle = handles().find(function);
    const auto name = names().find(handle == handles().end() ? function : handle->second);
    if (std::FILE* const file = std::fopen(std::getenv("WEFT_LAB_TIMES"), "a"); file && name != names().end()) {
      std::fprintf(file, "%s\t%llu\t%u\t%.6f\n", name->second.c_str(), 1ull * grid.x * grid.y * grid.z,
                   block.x * block.y * block.z, static_cast<double>(milliseconds));
      std::fclose(file);
    }
  }
  WEFT_NEXT(cudaEventDestroy, cudaEvent_t)(begin);
  WEFT_NEXT(cudaEventDestroy, cudaEvent_t)(end);
  return status;
}

}  // namespace

extern "C" {

void __cudaRegisterFunction(void** binary, const char* host, char* device, const char* name, int threads, uint3* thread,
                            uint3* block, dim3* block_size, dim3* grid_size, int* warp);
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared,
                               cudaStream_t stream);

void __cudaRegisterFunction(void** binary, const char* host, char* device, const char* name, int threads, uint3* thread,
                            uint3* block, dim3* block_size, dim3* grid_size, int* warp) {
  {
    const std::lock_guard lock(guard);
    names()[host] = name;
  }
  next<decltype(&__cudaRegisterFunction)>("__cudaRegisterFunction")(binary, host, device, name, threads, thread, block,
                                                                    block_size, grid_size, warp);
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host) {
  const cudaError_t status = WEFT_NEXT(__cudaGetKernel, cudaKernel_t*, const void*)(kernel, host);
  const std::lock_guard lock(guard);
  handles()[*kernel] = host;
  return status;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared,
                               cudaStream_t stream) {
  return timed(kernel, grid, block, stream, [&] {
    return WEFT_NEXT(__cudaLaunchKernel, cudaKernel_t, dim3, dim3, void**, size_t, cudaStream_t)(
        kernel, grid, block, arguments, shared, stream);
  });
}

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments, size_t shared,
                             cudaStream_t stream) {
  const auto launch = WEFT_NEXT(cudaLaunchKernel, const void*, dim3, dim3, void**, size_t, cudaStream_t);
  return timed(function, grid, block, stream, [&] { return launch(function, grid, block, arguments, shared, stream); });
}

cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block, void** arguments, size_t shared,
                                        cudaStream_t stream) {
  const auto launch = WEFT_NEXT(cudaLaunchCooperativeKernel, const void*, dim3, dim3, void**, size_t, cudaStream_t);
  return timed(function, grid, block, stream, [&] { return launch(function, grid, block, arguments, shared, stream); });
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function, void** arguments) {
  const auto launch = WEFT_NEXT(cudaLaunchKernelExC, const cudaLaunchConfig_t*, const void*, void**);
  return timed(function, config->gridDim, config->blockDim, config->stream,
               [&] { return launch(config, function, arguments); });
}

}  // extern "C"
