// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/runtime.h"

#include <cuda_runtime.h>

#include <atomic>
#include <cstdlib>

#include "kernels/error.h"
#include "kernels/runtime/sticky_error.h"

namespace weft::kernels::cuda {

namespace {

void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // clears the error for the next call
  fail(call, ": ", cudaGetErrorString(status), " (", cudaGetErrorName(status), ")", sticky_error_hint(status));
}

/// For calls that free resources: an error there belongs to earlier work, and the next call reports it.
void ignore(cudaError_t status) {
  if (status != cudaSuccess) cudaGetLastError();
}

/// 12040 becomes `12.4`.
std::string version_text(int version) { return str(version / 1000, '.', version % 1000 / 10); }

/// Accepts a missing driver and a driver without devices; throws for any other error that makes the GPUs unusable.
void check_no_device(cudaError_t status) {
  if (status == cudaErrorNoDevice) return;
  int driver = 0;
  ignore(cudaDriverGetVersion(&driver));
  if (driver == 0) return;  // no libcuda.so.1, which CUDA calls an insufficient driver, too
  if (status != cudaErrorInsufficientDriver) check(status, "cudaGetDeviceCount");
  constexpr int kMajor = CUDART_VERSION / 1000;
  fail("cudaGetDeviceCount: ", cudaGetErrorString(status), " (", cudaGetErrorName(status), "): the driver is for CUDA ",
       version_text(driver), ", and this program needs one for CUDA ", kMajor, ".0 or later",
       kMajor == 13   ? " (version 580 or later)"
       : kMajor == 12 ? " (version 525 or later)"
                      : "");
}

/// While an object lives, this thread may make calls that a capture considers unsafe, such as cudaMalloc: new memory is
/// no part of the captured work, and it is not freed while the graph lives.
class UnsafeCallsAllowed {
 public:
  UnsafeCallsAllowed() { ignore(cudaThreadExchangeStreamCaptureMode(&mode_)); }
  ~UnsafeCallsAllowed() { ignore(cudaThreadExchangeStreamCaptureMode(&mode_)); }
  UnsafeCallsAllowed(const UnsafeCallsAllowed&) = delete;
  UnsafeCallsAllowed& operator=(const UnsafeCallsAllowed&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

class DeviceRuntime final : public Runtime {
 public:
  /// Collectives and computation have streams of their own, and NCCL's kernels wait for other ranks: in one of the 8
  /// hardware queues that are usual, they would hold back the work of another stream. CUDA reads it at its first call.
  DeviceRuntime() { setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", /*overwrite=*/0); }

  int device_count() override {
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    if (status == cudaSuccess) return count;
    cudaGetLastError();
    check_no_device(status);
    return 0;
  }

  std::string describe(int index) override {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties");
    return str(properties.name, ", ", properties.multiProcessorCount, " SMs, ", properties.totalGlobalMem >> 30,
               " GiB");
  }

  std::string identity(int index) override {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties");
    std::string digits, text = "GPU-";
    bool known = false;
    for (const char byte : properties.uuid.bytes) {
      known = known || byte != 0;
      digits += "0123456789abcdef"[static_cast<unsigned char>(byte) >> 4];
      digits += "0123456789abcdef"[byte & 15];
    }
    if (!known) return "";
    for (size_t i = 0; i < digits.size(); ++i) {
      if (i == 8 || i == 12 || i == 16 || i == 20) text += '-';
      text += digits[i];
    }
    return text;
  }

  void memory_info(int index, size_t& free_bytes, size_t& total_bytes) override {
    select(index);
    check(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo");
  }

  void* allocate(int index, size_t bytes) override {
    select(index);
    const UnsafeCallsAllowed guard;
    void* memory = nullptr;
    const cudaError_t status = cudaMalloc(&memory, bytes);
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      return nullptr;
    }
    check(status, "cudaMalloc");
    return memory;
  }
  void release(int index, void* memory) noexcept override {
    ignore(cudaSetDevice(index));
    const UnsafeCallsAllowed guard;
    ignore(cudaFree(memory));
  }

  void* allocate_pinned(size_t bytes) override {
    select_any();
    void* memory = nullptr;
    const cudaError_t status = cudaHostAlloc(&memory, bytes, cudaHostAllocPortable);
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      return nullptr;
    }
    check(status, "cudaHostAlloc");
    return memory;
  }
  void release_pinned(void* memory) noexcept override {
    select_any();
    ignore(cudaFreeHost(memory));
  }

  void copy(int index, void* destination, const void* source, size_t bytes, void* stream) override {
    select(index);
    check(cudaMemcpyAsync(destination, source, bytes, cudaMemcpyDefault, to_stream(stream)), "cudaMemcpyAsync");
  }
  bool stages_pageable_memory(int index) override {
    int coherent = 0;
    check(cudaDeviceGetAttribute(&coherent, cudaDevAttrPageableMemoryAccessUsesHostPageTables, index),
          "cudaDeviceGetAttribute");
    return coherent == 0;
  }
  void fill_bytes(int index, void* destination, int byte, size_t bytes, void* stream) override {
    select(index);
    check(cudaMemsetAsync(destination, byte, bytes, to_stream(stream)), "cudaMemsetAsync");
  }

  void* create_stream(int index, int priority) override {
    select(index);
    cudaStream_t stream = nullptr;
    check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority), "cudaStreamCreateWithPriority");
    return stream;
  }
  void destroy_stream(int, void* stream) noexcept override {
    select_any();
    ignore(cudaStreamDestroy(to_stream(stream)));
  }
  void synchronize_stream(int index, void* stream) override {
    select(index);
    check(cudaStreamSynchronize(to_stream(stream)), "cudaStreamSynchronize");
  }
  void synchronize_device(int index) override {
    select(index);
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }

  void* create_event(int index, bool timing) override {
    select(index);
    cudaEvent_t event = nullptr;
    check(cudaEventCreateWithFlags(&event, timing ? cudaEventDefault : cudaEventDisableTiming),
          "cudaEventCreateWithFlags");
    return event;
  }
  void destroy_event(void* event) noexcept override {
    select_any();
    ignore(cudaEventDestroy(to_event(event)));
  }
  void record_event(void* event, int index, void* stream) override {
    select(index);
    check(cudaEventRecord(to_event(event), to_stream(stream)), "cudaEventRecord");
  }
  void wait_event(int index, void* stream, void* event) override {
    select(index);
    check(cudaStreamWaitEvent(to_stream(stream), to_event(event), 0), "cudaStreamWaitEvent");
  }
  bool query_event(void* event) override {
    select_any();
    const cudaError_t status = cudaEventQuery(to_event(event));
    if (status == cudaErrorNotReady) {
      cudaGetLastError();
      return false;
    }
    check(status, "cudaEventQuery");
    return true;
  }
  void synchronize_event(void* event) override {
    select_any();
    check(cudaEventSynchronize(to_event(event)), "cudaEventSynchronize");
  }
  float elapsed_ms(void* start, void* stop) override {
    select_any();
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, to_event(start), to_event(stop)), "cudaEventElapsedTime");
    return milliseconds;
  }

  void begin_capture(int index, void* stream) override {
    select(index);
    check(cudaStreamBeginCapture(to_stream(stream), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  }
  void* end_capture(int index, void* stream) override {
    select(index);
    cudaGraph_t graph = nullptr;
    check(cudaStreamEndCapture(to_stream(stream), &graph), "cudaStreamEndCapture");
    cudaGraphExec_t executable = nullptr;
    const cudaError_t status = cudaGraphInstantiate(&executable, graph, 0);
    ignore(cudaGraphDestroy(graph));
    check(status, "cudaGraphInstantiate");
    return executable;
  }
  void abandon_capture(int, void* stream) noexcept override {
    cudaGraph_t graph = nullptr;
    ignore(cudaStreamEndCapture(to_stream(stream), &graph));
    if (graph) ignore(cudaGraphDestroy(graph));
  }
  void launch_graph(int index, void* graph, void* stream) override {
    select(index);
    check(cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph), to_stream(stream)), "cudaGraphLaunch");
  }
  void destroy_graph(void* graph) noexcept override {
    select_any();
    ignore(cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph)));
  }

 private:
  static void select(int index) {
    check(cudaSetDevice(index), "cudaSetDevice");
    has_device_ = true;
    if (last_selected_.load(std::memory_order_relaxed) != index) last_selected_.store(index, std::memory_order_relaxed);
  }
  /// Called before calls without a device argument: a thread without a current device (a watchdog's, a loader's) uses a
  /// device that the process already uses. CUDA would create a context on device 0, half a GiB per rank of a node.
  static void select_any() noexcept {
    if (has_device_) return;
    const int index = last_selected_.load(std::memory_order_relaxed);
    if (index < 0) return;
    const cudaError_t status = cudaSetDevice(index);
    has_device_ = status == cudaSuccess;
    ignore(status);
  }
  static cudaStream_t to_stream(void* stream) { return static_cast<cudaStream_t>(stream); }
  static cudaEvent_t to_event(void* event) { return static_cast<cudaEvent_t>(event); }

  static inline thread_local bool has_device_ = false;
  static inline std::atomic<int> last_selected_{-1};
};

}  // namespace

Runtime& runtime() {
  static DeviceRuntime& runtime = *new DeviceRuntime;  // outlives every static object that frees device memory
  return runtime;
}

}  // namespace weft::kernels::cuda
