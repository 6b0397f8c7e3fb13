// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/runtime_api.h"

#include <chrono>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "kernels/simt/check.h"
#include "kernels/simt/memory.h"
#include "kernels/simt/simt.h"
#include "kernels/simt/worker.h"

namespace weft::emulator::api {

struct Stream {};
struct Event {
  bool timing = true;
  bool recorded = false;
  std::chrono::steady_clock::time_point time{};
};

namespace {

thread_local cudaError_t last_error = cudaSuccess;

cudaError_t result(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

/// Dynamic shared memory above 48 KiB must be asked for, as on the device.
struct SharedLimits {
  std::mutex mutex;
  std::unordered_map<const void*, size_t> bytes;
};
SharedLimits& shared_limits() {
  static SharedLimits& limits = *new SharedLimits;
  return limits;
}
size_t shared_limit(const void* function) {
  SharedLimits& limits = shared_limits();
  std::lock_guard lock(limits.mutex);
  const auto found = limits.bytes.find(function);
  return found == limits.bytes.end() ? kDefaultDynamicShared : found->second;
}

}  // namespace

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration:
      return "cudaErrorInvalidConfiguration";
    case cudaErrorInvalidDevice:
      return "cudaErrorInvalidDevice";
    case cudaErrorInvalidResourceHandle:
      return "cudaErrorInvalidResourceHandle";
    case cudaErrorNotReady:
      return "cudaErrorNotReady";
    case cudaErrorNotSupported:
      return "cudaErrorNotSupported";
  }
  return "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidConfiguration:
      return "invalid configuration argument";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorInvalidResourceHandle:
      return "invalid resource handle";
    case cudaErrorNotReady:
      return "device not ready";
    case cudaErrorNotSupported:
      return "operation not supported";
  }
  return "unrecognized error code";
}

cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return last_error; }

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) { return result(device == 0 ? cudaSuccess : cudaErrorInvalidDevice); }
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device != 0) return result(cudaErrorInvalidDevice);
  *properties = {};
  std::snprintf(properties->name, sizeof(properties->name), "emulated GPU on %d threads", thread_count());
  size_t free_bytes;
  memory_info(free_bytes, properties->totalGlobalMem);
  properties->sharedMemPerBlock = kDefaultDynamicShared;
  properties->sharedMemPerBlockOptin = kMaxDynamicShared;
  properties->sharedMemPerMultiprocessor = size_t{228} << 10;
  properties->major = 9;
  properties->multiProcessorCount = thread_count();
  properties->maxThreadsPerBlock = kMaxThreads;
  properties->maxThreadsPerMultiProcessor = 2048;
  properties->regsPerBlock = 65536;
  properties->warpSize = kLanes;
  properties->l2CacheSize = 32 << 20;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (device != 0) return result(cudaErrorInvalidDevice);
  *value = attribute == cudaDevAttrMultiProcessorCount ? thread_count() : static_cast<int>(kMaxDynamicShared);
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  memory_info(*free_bytes, *total_bytes);
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  *memory = nullptr;
  if (bytes == 0) return cudaSuccess;
  *memory = allocate(bytes, false);
  return result(*memory ? cudaSuccess : cudaErrorMemoryAllocation);
}
cudaError_t cudaFree(void* memory) {
  return result(!memory || release(memory, false) ? cudaSuccess : cudaErrorInvalidValue);
}
cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  *memory = bytes ? allocate(bytes, true) : nullptr;
  return result(*memory || !bytes ? cudaSuccess : cudaErrorMemoryAllocation);
}
cudaError_t cudaMallocHost(void** memory, size_t bytes) { return cudaHostAlloc(memory, bytes, cudaHostAllocDefault); }
cudaError_t cudaFreeHost(void* memory) {
  return result(!memory || release(memory, true) ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaMemcpy(void* destination, const void* source, size_t bytes, cudaMemcpyKind) {
  if (bytes == 0) return cudaSuccess;
  if (!destination || !source || !valid_range(destination, bytes) || !valid_range(source, bytes))
    return result(cudaErrorInvalidValue);
  std::memmove(destination, source, bytes);
  check_copied(destination, source, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* destination, const void* source, size_t bytes, cudaMemcpyKind kind, cudaStream_t) {
  return cudaMemcpy(destination, source, bytes, kind);
}
cudaError_t cudaMemset(void* destination, int byte, size_t bytes) {
  if (bytes == 0) return cudaSuccess;
  if (!in_device_range(reinterpret_cast<uintptr_t>(destination)) || !valid_range(destination, bytes))
    return result(cudaErrorInvalidValue);
  std::memset(destination, byte, bytes);
  check_filled(destination, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* destination, int byte, size_t bytes, cudaStream_t) {
  return cudaMemset(destination, byte, bytes);
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  *stream = new Stream;
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) { return cudaStreamCreate(stream); }
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (!stream) return result(cudaErrorInvalidResourceHandle);
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamQuery(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t event, unsigned) {
  return result(event ? cudaSuccess : cudaErrorInvalidResourceHandle);
}
cudaError_t cudaLaunchHostFunc(cudaStream_t, void (*function)(void*), void* data) {
  function(data);
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  *event = new Event;
  (*event)->timing = !(flags & cudaEventDisableTiming);
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  if (!event) return result(cudaErrorInvalidResourceHandle);
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
  if (!event) return result(cudaErrorInvalidResourceHandle);
  event->recorded = true;
  event->time = std::chrono::steady_clock::now();
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) { return result(event ? cudaSuccess : cudaErrorInvalidResourceHandle); }
cudaError_t cudaEventSynchronize(cudaEvent_t event) { return cudaEventQuery(event); }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t stop) {
  if (!start || !stop || !start->timing || !stop->timing || !start->recorded || !stop->recorded)
    return result(cudaErrorInvalidResourceHandle);
  *milliseconds = std::chrono::duration<float, std::milli>(stop->time - start->time).count();
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute, int value) {
  if (value < 0 || static_cast<size_t>(value) > kMaxDynamicShared) return result(cudaErrorInvalidValue);
  SharedLimits& limits = shared_limits();
  std::lock_guard lock(limits.mutex);
  limits.bytes[function] = static_cast<size_t>(value);
  return cudaSuccess;
}

cudaError_t launch_grid(const Launch& launch) {
  const dim3 g = launch.grid, b = launch.block;
  const bool grid_fits = g.x > 0 && g.x <= 0x7fffffffu && g.y > 0 && g.y <= 65535 && g.z > 0 && g.z <= 65535;
  const bool block_fits = b.x > 0 && b.x <= 1024 && b.y > 0 && b.y <= 1024 && b.z > 0 && b.z <= 64 &&
                          b.x * b.y * b.z <= static_cast<unsigned>(kMaxThreads);
  if (!grid_fits || !block_fits) return result(cudaErrorInvalidConfiguration);
  if (launch.dynamic_shared > kDefaultDynamicShared && launch.dynamic_shared > shared_limit(launch.function))
    return result(cudaErrorInvalidValue);
  run_grid(launch);
  return cudaSuccess;
}

}  // namespace weft::emulator::api
