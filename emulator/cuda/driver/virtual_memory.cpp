// SPDX-License-Identifier: Apache-2.0
#include "emulator/cuda/virtual_memory.h"

#include "emulator/cuda/driver/call.h"

using namespace emulator;
using namespace emulator::cuda;

namespace {

void check(const CUmemAllocationProp& p) {
  require(p.type == CU_MEM_ALLOCATION_TYPE_PINNED && p.location.type == CU_MEM_LOCATION_TYPE_DEVICE);
  if (p.requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE &&
      p.requestedHandleTypes != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
    fail(cudaErrorNotSupported, "shareable handles other than file descriptors are not emulated");
}

}  // namespace

CUresult cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* prop,
                                       CUmemAllocationGranularity_flags) {
  return call([&] {
    check(*prop);
    *granularity = kVirtualGranularity;
  });
}
CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t size, const CUmemAllocationProp* prop,
                     unsigned long long flags) {
  return call([&] {
    require(flags == 0);
    check(*prop);
    *handle = physical_create(size, prop->location.id, prop->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE);
  });
}
CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  return call([&] { physical_release(handle); });
}
CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* memory) {
  return call([&] { *handle = physical_at(memory); });
}
CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* prop, CUmemGenericAllocationHandle handle) {
  return call([&] {
    const PhysicalMemory physical = physical_memory(handle);
    *prop = {};
    prop->type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop->location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop->location.id = physical.device;
    prop->requestedHandleTypes =
        physical.shareable ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : CU_MEM_HANDLE_TYPE_NONE;
  });
}
CUresult cuMemAddressReserve(CUdeviceptr* memory, size_t size, size_t alignment, CUdeviceptr,
                             unsigned long long flags) {
  return call([&] {
    require(flags == 0);
    *memory = address(address_reserve(size, alignment));  // the address that is asked for is a hint
  });
}
CUresult cuMemAddressFree(CUdeviceptr memory, size_t size) {
  return call([&] { address_free(pointer(memory), size); });
}
CUresult cuMemMap(CUdeviceptr memory, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
  return call([&] {
    require(flags == 0);
    map_physical(pointer(memory), size, offset, handle);
  });
}
CUresult cuMemUnmap(CUdeviceptr memory, size_t size) {
  return call([&] { unmap_physical(pointer(memory), size); });
}
CUresult cuMemSetAccess(CUdeviceptr memory, size_t size, const CUmemAccessDesc* desc, size_t count) {
  return call([&] {
    require(desc != nullptr && count > 0);
    bool readable = false, writable = false;
    for (size_t i = 0; i < count; ++i) {
      readable = readable || desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE;
      writable = writable || desc[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    }
    set_access(pointer(memory), size, readable, writable);
  });
}
CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation*, CUdeviceptr memory) {
  return call([&] {
    *flags = is_accessible(pointer(memory)) ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  });
}
CUresult cuMemExportToShareableHandle(void* shareable, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long) {
  return call([&] {
    require(type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, cudaErrorNotSupported);
    *static_cast<int*>(shareable) = physical_export(handle);
  });
}
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* shareable,
                                        CUmemAllocationHandleType type) {
  return call([&] {
    require(type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, cudaErrorNotSupported);
    *handle = physical_import(int(reinterpret_cast<intptr_t>(shareable)), current_device());
  });
}
