// SPDX-License-Identifier: Apache-2.0
// A watchdog's or a loader's thread has set no device. On a node of several GPUs its calls must not make a context on GPU 0, where
// another rank works: Weft's runtime takes the device that the process uses, here the second.
#include <cuda_runtime.h>

#include <unistd.h>

#include <cstdio>
#include <thread>

#include "kernels/runtime/runtime.h"

namespace {

__global__ void write(int* out) { *out = 7; }

/// Static objects end when the main thread's own objects have: calls still work, on the device that it used.
struct Last {
  ~Last() {
    int device = -1, value = 0;
    int* memory = nullptr;
    cudaGetDevice(&device);
    cudaMalloc(&memory, sizeof(int));
    write<<<1, 1>>>(memory);
    cudaMemcpy(&value, memory, sizeof(int), cudaMemcpyDeviceToHost);
    if (device == 1 && value == 7 && cudaFree(memory) == cudaSuccess) return;
    std::printf("FAILED at the end: device %d, value %d\n", device, value);
    std::fflush(stdout);
    _exit(1);
  }
} last;

}  // namespace

int main() {
  weft::kernels::Runtime& gpu = weft::kernels::cuda::runtime();
  void* const event = gpu.create_event(1, true);
  gpu.record_event(event, 1, nullptr);
  void* const pinned = gpu.allocate_pinned(100);
  void* const stream = gpu.create_stream(1);
  int failed = 0;
  const auto in_a_new_thread = [&](const char* name, auto&& call) {
    int device = -1;
    std::thread([&] {
      call();
      cudaGetDevice(&device);
    }).join();
    std::printf("%s %s: device %d\n", device == 1 ? "ok" : "FAILED", name, device);
    failed += device != 1;
  };
  in_a_new_thread("query_event", [&] { gpu.query_event(event); });
  in_a_new_thread("synchronize_event", [&] { gpu.synchronize_event(event); });
  in_a_new_thread("elapsed_ms", [&] { gpu.elapsed_ms(event, event); });
  in_a_new_thread("allocate_pinned", [&] { gpu.release_pinned(gpu.allocate_pinned(100)); });
  in_a_new_thread("release_pinned", [&] { gpu.release_pinned(pinned); });
  in_a_new_thread("destroy_stream", [&] { gpu.destroy_stream(1, stream); });
  in_a_new_thread("destroy_event", [&] { gpu.destroy_event(event); });
  cudaSetDevice(1);
  return failed ? 1 : 0;
}
