// SPDX-License-Identifier: Apache-2.0
// Memory pools. The runtime's calls (cuda/runtime/device.cpp) have the same enumerations.
#include "emulator/cuda/driver/call.h"

using namespace emulator;
using namespace emulator::cuda;

namespace {

CUmemoryPool handle(Pool& pool) { return reinterpret_cast<CUmemoryPool>(&pool); }
Pool& current_pool(Device& device) { return device.pool ? *device.pool : device.default_pool(); }
Device& device_of(const CUmemLocation* location, CUmemAllocationType type) {
  require(location && location->type == CU_MEM_LOCATION_TYPE_DEVICE && type == CU_MEM_ALLOCATION_TYPE_PINNED,
          cudaErrorNotSupported);
  return Device::get(location->id);
}

}  // namespace

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
  return call([&] { *pool = handle(Device::get(device).default_pool()); });
}
CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice device) {
  return call([&] { *pool = handle(current_pool(Device::get(device))); });
}
CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
  return call([&] {
    require(pool_of(pool)->device == device);
    Device::get(device).pool = pool_of(pool);
  });
}
CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* properties) {
  return call([&] {
    require(properties != nullptr);
    *pool = handle(*pool_create(device_of(&properties->location, properties->allocType).ordinal()));
  });
}
CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  return call([&] { pool_destroy(pool_of(pool)); });
}
CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t bytes) {
  return call([&] { pool_trim(*pool_of(pool), bytes); });
}
CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  return call([&] { pool_set(*pool_of(pool), attribute, value); });
}
CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  return call([&] { pool_get(*pool_of(pool), attribute, value); });
}
CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc*, size_t) {
  return call([&] { pool_of(pool); });
}
CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool pool, CUmemLocation*) {
  return call([&] {
    pool_of(pool);
    *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  });
}
