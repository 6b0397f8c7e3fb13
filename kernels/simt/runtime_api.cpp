// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/runtime_api.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "kernels/simt/census.h"
#include "kernels/simt/check.h"
#include "kernels/simt/memory.h"
#include "kernels/simt/simt.h"
#include "kernels/simt/stream.h"
#include "kernels/simt/worker.h"

namespace weft::emulator::api {

namespace {

thread_local cudaError_t last_error = cudaSuccess;
thread_local bool has_device = false;  // has this thread called cudaSetDevice?
std::atomic<int64_t> without_device{0};

/// A call that needs a device and names none: CUDA takes the thread's, which is number 0 until the thread says
/// otherwise.
void use_device() {
  if (!has_device) without_device.fetch_add(1, std::memory_order_relaxed);
}

cudaError_t result(cudaError_t error) { return record_error(error); }

/// What one block may have: 227 KiB on Hopper, 163 KiB on an A100 (CUDA C++ Programming Guide, "Compute Capabilities").
size_t most_dynamic_shared() { return device_capability() >= 90 ? kMaxDynamicShared : size_t{163} << 10; }

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

cudaError_t record_error(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

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
    case cudaErrorInvalidClusterSize:
      return "cudaErrorInvalidClusterSize";
    case cudaErrorStreamCaptureUnsupported:
      return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorStreamCaptureInvalidated:
      return "cudaErrorStreamCaptureInvalidated";
    case cudaErrorStreamCaptureUnmatched:
      return "cudaErrorStreamCaptureUnmatched";
    case cudaErrorStreamCaptureIsolation:
      return "cudaErrorStreamCaptureIsolation";
    case cudaErrorStreamCaptureImplicit:
      return "cudaErrorStreamCaptureImplicit";
    case cudaErrorCapturedEvent:
      return "cudaErrorCapturedEvent";
    case cudaErrorStreamCaptureWrongThread:
      return "cudaErrorStreamCaptureWrongThread";
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
    case cudaErrorInvalidClusterSize:
      return "invalid cluster size";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated:
      return "operation failed due to a previous error during capture";
    case cudaErrorStreamCaptureUnmatched:
      return "capture was not initiated in this stream";
    case cudaErrorStreamCaptureIsolation:
      return "dependency created on uncaptured work in another stream";
    case cudaErrorStreamCaptureImplicit:
      return "operation would make the legacy stream depend on a capturing blocking stream";
    case cudaErrorCapturedEvent:
      return "operation not permitted on an event last recorded in a capturing stream";
    case cudaErrorStreamCaptureWrongThread:
      return "attempt to terminate a thread-local capture sequence from another thread";
  }
  return "unrecognized error code";
}

cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return last_error; }

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device != 0) return result(cudaErrorInvalidDevice);
  has_device = true;
  return cudaSuccess;
}
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
  properties->sharedMemPerBlockOptin = most_dynamic_shared();
  properties->sharedMemPerMultiprocessor = most_dynamic_shared() + 1024;
  properties->major = device_capability() / 10;
  properties->minor = device_capability() % 10;
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
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
      *value = thread_count();
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
      *value = device_capability() / 10;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
      *value = device_capability() % 10;
      return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = static_cast<int>(most_dynamic_shared());
      return cudaSuccess;
  }
  return result(cudaErrorInvalidValue);
}

cudaError_t cudaDeviceSynchronize() { return result(may_call_unsafe()); }
cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  memory_info(*free_bytes, *total_bytes);
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  use_device();
  *memory = nullptr;
  if (const cudaError_t status = may_call_unsafe(); status != cudaSuccess) return result(status);
  if (bytes == 0) return cudaSuccess;
  *memory = allocate(bytes, false);
  return result(*memory ? cudaSuccess : cudaErrorMemoryAllocation);
}
cudaError_t cudaFree(void* memory) {
  use_device();
  if (const cudaError_t status = may_call_unsafe(); status != cudaSuccess) return result(status);
  return result(!memory || release(memory, false) ? cudaSuccess : cudaErrorInvalidValue);
}
cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  use_device();
  if (const cudaError_t status = may_call_unsafe(); status != cudaSuccess) return result(status);
  *memory = bytes ? allocate(bytes, true) : nullptr;
  return result(*memory || !bytes ? cudaSuccess : cudaErrorMemoryAllocation);
}
cudaError_t cudaMallocHost(void** memory, size_t bytes) { return cudaHostAlloc(memory, bytes, cudaHostAllocDefault); }
cudaError_t cudaFreeHost(void* memory) {
  use_device();
  if (const cudaError_t status = may_call_unsafe(); status != cudaSuccess) return result(status);
  return result(!memory || release(memory, true) ? cudaSuccess : cudaErrorInvalidValue);
}

namespace {

bool can_copy(const void* destination, const void* source, size_t bytes) {
  return destination && source && valid_range(destination, bytes) && valid_range(source, bytes);
}
bool can_fill(const void* destination, size_t bytes) {
  return in_device_range(reinterpret_cast<uintptr_t>(destination)) && valid_range(destination, bytes);
}

cudaError_t copy_now(void* destination, const void* source, size_t bytes) {
  if (bytes == 0) return cudaSuccess;
  if (!can_copy(destination, source, bytes)) return result(cudaErrorInvalidValue);
  std::memmove(destination, source, bytes);
  check_copied(destination, source, bytes);
  return cudaSuccess;
}

cudaError_t fill_now(void* destination, int byte, size_t bytes) {
  if (bytes == 0) return cudaSuccess;
  if (!can_fill(destination, bytes)) return result(cudaErrorInvalidValue);
  std::memset(destination, byte, bytes);
  check_filled(destination, bytes);
  return cudaSuccess;
}

}  // namespace

cudaError_t cudaMemcpy(void* destination, const void* source, size_t bytes, cudaMemcpyKind) {
  if (const cudaError_t status = may_call_unsafe(); status != cudaSuccess) return result(status);
  return copy_now(destination, source, bytes);
}
cudaError_t cudaMemcpyAsync(void* destination, const void* source, size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  if (const cudaError_t status = may_run_on(stream); status != cudaSuccess) return result(status);
  if (!is_captured(stream) || bytes == 0) return copy_now(destination, source, bytes);
  if (!can_copy(destination, source, bytes)) return result(cudaErrorInvalidValue);
  capture_copy(stream, destination, source, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemset(void* destination, int byte, size_t bytes) {
  if (const cudaError_t status = may_call_unsafe(); status != cudaSuccess) return result(status);
  return fill_now(destination, byte, bytes);
}
cudaError_t cudaMemsetAsync(void* destination, int byte, size_t bytes, cudaStream_t stream) {
  if (const cudaError_t status = may_run_on(stream); status != cudaSuccess) return result(status);
  if (!is_captured(stream) || bytes == 0) return fill_now(destination, byte, bytes);
  if (!can_fill(destination, bytes)) return result(cudaErrorInvalidValue);
  capture_fill(stream, destination, byte, bytes);
  return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  *stream = new Stream;
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  *stream = new Stream{.blocking = !(flags & cudaStreamNonBlocking)};
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  use_device();
  if (!stream) return result(cudaErrorInvalidResourceHandle);
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  break_capture(stream);
  return result(is_captured(stream) ? cudaErrorStreamCaptureUnsupported : may_call_unsafe());
}
cudaError_t cudaStreamQuery(cudaStream_t stream) { return cudaStreamSynchronize(stream); }
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (!event) return result(cudaErrorInvalidResourceHandle);
  if (event->captured == is_captured(stream)) return cudaSuccess;
  break_capture(stream);
  // A device would take the other stream into the capture; the emulator captures one stream.
  return result(event->captured ? cudaErrorNotSupported : cudaErrorStreamCaptureIsolation);
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, void (*function)(void*), void* data) {
  if (is_captured(stream)) return result(cudaErrorNotSupported);
  function(data);
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  use_device();
  *event = new Event;
  (*event)->timing = !(flags & cudaEventDisableTiming);
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  use_device();
  if (!event) return result(cudaErrorInvalidResourceHandle);
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (!event) return result(cudaErrorInvalidResourceHandle);
  if (const cudaError_t status = may_run_on(stream); status != cudaSuccess) return result(status);
  event->captured = is_captured(stream);
  event->recorded = true;
  event->time = std::chrono::steady_clock::now();
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  use_device();
  if (!event) return result(cudaErrorInvalidResourceHandle);
  return result(event->captured ? cudaErrorCapturedEvent : may_call_unsafe());
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) { return cudaEventQuery(event); }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t stop) {
  use_device();
  if (!start || !stop || !start->timing || !stop->timing || !start->recorded || !stop->recorded || start->captured ||
      stop->captured)
    return result(cudaErrorInvalidResourceHandle);
  *milliseconds = std::chrono::duration<float, std::milli>(stop->time - start->time).count();
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute, int value) {
  if (value < 0 || static_cast<size_t>(value) > most_dynamic_shared()) return result(cudaErrorInvalidValue);
  SharedLimits& limits = shared_limits();
  std::lock_guard lock(limits.mutex);
  limits.bytes[function] = static_cast<size_t>(value);
  return cudaSuccess;
}

dim3 cluster_of(const cudaLaunchConfig_t& config) {
  dim3 cluster(1, 1, 1);
  for (unsigned i = 0; i < config.numAttrs; ++i)
    if (config.attrs[i].id == cudaLaunchAttributeClusterDimension) {
      const auto dim = config.attrs[i].val.clusterDim;
      cluster = dim3(dim.x, dim.y, dim.z);
    }
  return cluster;
}

cudaError_t launch_grid(const Launch& launch) {
  const dim3 g = launch.grid, b = launch.block, c = launch.cluster;
  // More than 8 blocks in a cluster are not portable.
  if (c.x * c.y * c.z == 0 || c.x * c.y * c.z > 8 || (c.x * c.y * c.z > 1 && device_capability() < 90))
    return result(cudaErrorInvalidClusterSize);
  if (g.x % c.x || g.y % c.y || g.z % c.z) return result(cudaErrorInvalidClusterSize);
  const bool grid_fits = g.x > 0 && g.x <= 0x7fffffffu && g.y > 0 && g.y <= 65535 && g.z > 0 && g.z <= 65535;
  const bool block_fits = b.x > 0 && b.x <= 1024 && b.y > 0 && b.y <= 1024 && b.z > 0 && b.z <= 64 &&
                          b.x * b.y * b.z <= static_cast<unsigned>(kMaxThreads);
  if (!grid_fits || !block_fits) return result(cudaErrorInvalidConfiguration);
  const size_t shared_most = std::min(shared_limit(launch.function), most_dynamic_shared());
  if (launch.dynamic_shared > kDefaultDynamicShared && launch.dynamic_shared > shared_most)
    return result(cudaErrorInvalidValue);
  const auto stream = static_cast<cudaStream_t>(launch.stream);
  if (const cudaError_t status = may_run_on(stream); status != cudaSuccess) return result(status);
  if (is_captured(stream))
    capture_launch(launch);
  else
    run_grid(launch);
  return cudaSuccess;
}

}  // namespace weft::emulator::api

namespace weft::emulator {

int64_t calls_without_device() { return api::without_device; }

}  // namespace weft::emulator
