// SPDX-License-Identifier: Apache-2.0
#include "emulator/source/runtime_api.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>
#include <unordered_map>

#include "emulator/source/census.h"
#include "emulator/source/check.h"
#include "emulator/source/memory.h"
#include "emulator/source/simt.h"
#include "emulator/source/stream.h"
#include "emulator/source/worker.h"

namespace emulator::source::api {

namespace {

thread_local cudaError_t last_error = cudaSuccess;
thread_local bool has_device = false;  // has this thread called cudaSetDevice?
std::atomic<int64_t> without_device{0};

cudaError_t result(cudaError_t error) { return record_error(error); }

/// The limit of a block: 227 KiB on Hopper, 163 KiB on an A100 (CUDA C++ Programming Guide, "Compute Capabilities").
size_t most_dynamic_shared() { return device_capability() >= 90 ? kMaxDynamicShared : size_t{163} << 10; }

/// Dynamic shared memory above 48 KiB must be requested, as on the device.
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

void use_device() {
  if (!has_device) without_device.fetch_add(1, std::memory_order_relaxed);
}

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
    case cudaErrorLaunchFailure:
      return "cudaErrorLaunchFailure";
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
    case cudaErrorStreamCaptureUnjoined:
      return "cudaErrorStreamCaptureUnjoined";
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
    case cudaErrorLaunchFailure:
      return failure_text().c_str();
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
    case cudaErrorStreamCaptureUnjoined:
      return "capturing stream has unjoined work";
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

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  memory_info(*free_bytes, *total_bytes);
  return cudaSuccess;
}

namespace {

cudaError_t take_memory(void** memory, size_t bytes, bool pinned) {
  *memory = nullptr;
  if (bytes == 0) return cudaSuccess;
  const cudaError_t status = run_now([&] { *memory = allocate(bytes, pinned); });
  return result(status != cudaSuccess || *memory ? status : cudaErrorMemoryAllocation);
}

}  // namespace

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  use_device();
  if (const cudaError_t status = may_call_unsafe(); status != cudaSuccess) return result(status);
  return take_memory(memory, bytes, false);
}
cudaError_t cudaFree(void* memory) {
  use_device();
  if (const cudaError_t status = may_call_unsafe(); status != cudaSuccess) return result(status);
  finish_streams();  // as CUDA does
  return result(!memory || release(memory, false) ? cudaSuccess : cudaErrorInvalidValue);
}
cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  use_device();
  if (const cudaError_t status = may_call_unsafe(); status != cudaSuccess) return result(status);
  return take_memory(memory, bytes, true);
}
cudaError_t cudaMallocHost(void** memory, size_t bytes) { return cudaHostAlloc(memory, bytes, cudaHostAllocDefault); }
cudaError_t cudaFreeHost(void* memory) {
  use_device();
  if (const cudaError_t status = may_call_unsafe(); status != cudaSuccess) return result(status);
  finish_streams();
  return result(!memory || release(memory, true) ? cudaSuccess : cudaErrorInvalidValue);
}

namespace {

bool can_copy(const void* destination, const void* source, size_t bytes) {
  return destination && source && valid_range(destination, bytes) && valid_range(source, bytes);
}
bool can_fill(const void* destination, size_t bytes) {
  return in_device_range(reinterpret_cast<uintptr_t>(destination)) && valid_range(destination, bytes);
}

bool is_pageable(const void* memory) { return !in_device_range(reinterpret_cast<uintptr_t>(memory)); }

Task copy_task(void* destination, const void* source, size_t bytes) {
  return [=] {
    std::memmove(destination, source, bytes);
    check_copied(destination, source, bytes);
  };
}

/// The same for pageable memory, which is read now.
Task staged_copy_task(void* destination, const void* source, size_t bytes) {
  return [=, staged = std::string(static_cast<const char*>(source), bytes)] {
    std::memcpy(destination, staged.data(), bytes);
    check_copied(destination, source, bytes);
  };
}

Task fill_task(void* destination, int byte, size_t bytes) {
  return [=] {
    std::memset(destination, byte, bytes);
    check_filled(destination, bytes);
  };
}

}  // namespace

cudaError_t cudaMemcpy(void* destination, const void* source, size_t bytes, cudaMemcpyKind) {
  if (const cudaError_t status = may_call_unsafe(); status != cudaSuccess) return result(status);
  if (bytes == 0) return cudaSuccess;
  if (!can_copy(destination, source, bytes)) return result(cudaErrorInvalidValue);
  return result(submit(nullptr, Operation::Kind::device, copy_task(destination, source, bytes), true));
}
cudaError_t cudaMemcpyAsync(void* destination, const void* source, size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  if (const cudaError_t status = may_run_on(stream); status != cudaSuccess) return result(status);
  if (bytes == 0) return cudaSuccess;
  if (!can_copy(destination, source, bytes)) return result(cudaErrorInvalidValue);
  if (is_captured(stream)) {
    capture(*stream, Operation::Kind::device, copy_task(destination, source, bytes));
    return cudaSuccess;
  }
  const bool staged = asynchronous() && is_pageable(source);
  return result(submit(stream, Operation::Kind::device,
                       (staged ? staged_copy_task : copy_task)(destination, source, bytes), is_pageable(destination)));
}
cudaError_t cudaMemset(void* destination, int byte, size_t bytes) {
  if (const cudaError_t status = may_call_unsafe(); status != cudaSuccess) return result(status);
  if (bytes == 0) return cudaSuccess;
  if (!can_fill(destination, bytes)) return result(cudaErrorInvalidValue);
  return result(submit(nullptr, Operation::Kind::device, fill_task(destination, byte, bytes)));
}
cudaError_t cudaMemsetAsync(void* destination, int byte, size_t bytes, cudaStream_t stream) {
  if (const cudaError_t status = may_run_on(stream); status != cudaSuccess) return result(status);
  if (bytes == 0) return cudaSuccess;
  if (!can_fill(destination, bytes)) return result(cudaErrorInvalidValue);
  if (!is_captured(stream)) return result(submit(stream, Operation::Kind::device, fill_task(destination, byte, bytes)));
  capture(*stream, Operation::Kind::device, fill_task(destination, byte, bytes));
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
  if (is_captured(stream)) {
    capture(*stream, Operation::Kind::device, kernel_task(launch, " in a graph"));
    return cudaSuccess;
  }
  if (asynchronous()) return result(submit(stream, Operation::Kind::device, kernel_task(launch, "")));
  return result(run_now([&] { run_grid(launch); }));
}

}  // namespace emulator::source::api

namespace emulator::source {

int64_t calls_without_device() { return api::without_device; }

}  // namespace emulator::source
