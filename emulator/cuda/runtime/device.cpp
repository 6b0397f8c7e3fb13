// SPDX-License-Identifier: Apache-2.0
#include "emulator/cuda/runtime/call.h"

using namespace emulator;
using namespace emulator::cuda;

namespace {

Pool& current_pool(int device) {
  Device& d = Device::get(device);
  Pool& standard = d.default_pool();
  return d.pool ? *d.pool : standard;
}

int of_location(const cudaMemLocation* location, cudaMemAllocationType type) {
  require(location != nullptr && type == cudaMemAllocationTypePinned);
  require(location->type == cudaMemLocationTypeDevice, cudaErrorNotSupported);
  return location->id;
}

}  // namespace

cudaError_t cudaGetLastError() { return last_error(true); }
cudaError_t cudaPeekAtLastError() { return last_error(false); }
const char* cudaGetErrorName(cudaError_t code) {
  const char* const name = error_name(code);
  return name ? name : "unrecognized error code";
}
const char* cudaGetErrorString(cudaError_t code) {
  const char* const text = error_string(code);
  return text ? text : "unrecognized error code";
}

cudaError_t cudaLogsRegisterCallback(cudaLogsCallback_t callback, void* data, cudaLogsCallbackHandle* handle) {
  return runtime_call([&] {
    void* const added = add_log_callback(reinterpret_cast<LogCallback>(callback), data);
    if (handle) *handle = static_cast<cudaLogsCallbackHandle>(added);
  });
}
cudaError_t cudaLogsUnregisterCallback(cudaLogsCallbackHandle handle) {
  return runtime_call([&] { remove_log_callback(handle); });
}

cudaError_t cudaGetDeviceCount(int* count) {
  if (count) *count = Device::count();  // 0 beside cudaErrorNoDevice
  return runtime_call([&] { require(count != nullptr); });
}
// These work also when the context has died: they ask nothing of it.
cudaError_t cudaSetDevice(int device) {
  try {
    set_current_device(device);
    Device::get(device).active = true;
    return cudaSuccess;
  } catch (...) {
    const cudaError_t code = code_of_exception();
    remember(code);
    return code;
  }
}
cudaError_t cudaInitDevice(int device, unsigned, unsigned) {
  return runtime_call([&] { Device::get(device).active = true; });
}
cudaError_t cudaGetDevice(int* device) {
  return runtime_call([&] { *device = current_device(); });
}
cudaError_t cudaSetValidDevices(int* devices, int count) {
  return runtime_call([&] {
    for (int i = 0; i < count; ++i) Device::get(devices[i]);
  });
}
cudaError_t cudaSetDeviceFlags(unsigned flags) {
  return runtime_call([&] { Device::current().flags = flags; });
}
cudaError_t cudaGetDeviceFlags(unsigned* flags) {
  return runtime_call([&] { *flags = Device::current().flags | cudaDeviceMapHost; });
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return runtime_call([&] { device_properties(Device::get(device), *properties); });
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return runtime_call([&] { require(device_attribute(Device::get(device), attribute, *value)); });
}
cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp*) {
  return runtime_call([&] { *device = 0; });
}
cudaError_t cudaDeviceSynchronize() {
  return runtime_call([] { device_synchronize(); });
}
cudaError_t cudaDeviceReset() {
  try {
    device_reset(current_device());
    last_error(true);
    return cudaSuccess;
  } catch (...) {
    return code_of_exception();
  }
}
cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
  return runtime_call([&] {
    require(limit <= cudaLimitPersistingL2CacheSize, cudaErrorUnsupportedLimit);
    Device::current().limits[size_t(limit)] = value;
  });
}
cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
  return runtime_call([&] {
    require(limit <= cudaLimitPersistingL2CacheSize, cudaErrorUnsupportedLimit);
    *value = Device::current().limits[size_t(limit)];
  });
}
cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config) {
  return runtime_call([&] { *config = cudaFuncCachePreferNone; });
}
cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) {
  return runtime_call([] {});
}
cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config) {
  return runtime_call([&] { *config = cudaSharedMemBankSizeFourByte; });
}
cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig) {
  return runtime_call([] {});
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return runtime_call([&] {
    if (least) *least = 0;
    if (greatest) *greatest = -5;
  });
}
cudaError_t cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTarget, cudaFlushGPUDirectRDMAWritesScope) {
  return runtime_call([] {});
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  return runtime_call([&] {
    require(flags == 0);
    require(Device::get(peer).ordinal() != current_device(), cudaErrorInvalidDevice);
    const Lock lock = lock_state();
    require(Device::current().peers.insert(peer).second, cudaErrorPeerAccessAlreadyEnabled);
  });
}
cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  return runtime_call([&] {
    Device::get(peer);
    const Lock lock = lock_state();
    require(Device::current().peers.erase(peer) == 1, cudaErrorPeerAccessNotEnabled);
  });
}
cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr attribute, int device, int peer) {
  return runtime_call([&] {
    require(Device::get(device).ordinal() != Device::get(peer).ordinal(), cudaErrorInvalidDevice);
    *value = attribute == cudaDevP2PAttrPerformanceRank ? 0 : 1;
  });
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = kRuntimeVersion;
  return cudaSuccess;
}
WEFT_EXPORT cudaError_t cudaProfilerStart() {
  return runtime_call([] {});
}
WEFT_EXPORT cudaError_t cudaProfilerStop() {
  return runtime_call([] {});
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  return runtime_call([&] { *pool = reinterpret_cast<cudaMemPool_t>(&Device::get(device).default_pool()); });
}
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return runtime_call([&] { *pool = reinterpret_cast<cudaMemPool_t>(&current_pool(device)); });
}
cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  return runtime_call([&] {
    require(pool_of(pool)->device == device);
    Device::get(device).pool = pool_of(pool);
  });
}
cudaError_t cudaMemGetDefaultMemPool(cudaMemPool_t* pool, cudaMemLocation* location, cudaMemAllocationType type) {
  return runtime_call(
      [&] { *pool = reinterpret_cast<cudaMemPool_t>(&Device::get(of_location(location, type)).default_pool()); });
}
cudaError_t cudaMemGetMemPool(cudaMemPool_t* pool, cudaMemLocation* location, cudaMemAllocationType type) {
  return runtime_call([&] { *pool = reinterpret_cast<cudaMemPool_t>(&current_pool(of_location(location, type))); });
}
cudaError_t cudaMemSetMemPool(cudaMemLocation* location, cudaMemAllocationType type, cudaMemPool_t pool) {
  return runtime_call([&] { Device::get(of_location(location, type)).pool = pool_of(pool); });
}
cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  return runtime_call([&] {
    require(properties != nullptr && properties->allocType == cudaMemAllocationTypePinned);
    require(properties->location.type == cudaMemLocationTypeDevice, cudaErrorNotSupported);
    *pool = reinterpret_cast<cudaMemPool_t>(pool_create(properties->location.id));
  });
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  return runtime_call([&] { pool_destroy(pool_of(pool)); });
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes) {
  return runtime_call([&] { pool_trim(*pool_of(pool), bytes); });
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return runtime_call([&] { pool_set(*pool_of(pool), attribute, value); });
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return runtime_call([&] { pool_get(*pool_of(pool), attribute, value); });
}
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc*, size_t) {
  return runtime_call([&] { pool_of(pool); });
}
cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t pool, cudaMemLocation*) {
  return runtime_call([&] {
    pool_of(pool);
    *flags = cudaMemAccessFlagsProtReadWrite;
  });
}
