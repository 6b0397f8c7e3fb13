// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "emulator/cuda/driver/call.h"

using namespace emulator;
using namespace emulator::cuda;

namespace {

CUresult copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return call([&] { submit_copy(copy_bytes(to, from, bytes, kind), nullptr, true); });
}
CUresult copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, CUstream stream) {
  return call([&] { submit_copy(copy_bytes(to, from, bytes, kind), stream, false); });
}

/// One side of a copy: `pos` counts the elements of an array, else bytes.
void take_side(CUmemorytype type, const void* host, CUdeviceptr device, CUarray array, size_t x, size_t y, size_t z, size_t pitch,
               size_t width, size_t height, cudaArray_t& in_array, cudaPitchedPtr& linear, cudaPos& pos) {
  if (type == CU_MEMORYTYPE_ARRAY) {
    in_array = reinterpret_cast<cudaArray_t>(array);
    const size_t element = array_of(in_array).element;
    require(x % element == 0);
    pos = {x / element, y, z};
    return;
  }
  char* const data = type == CU_MEMORYTYPE_HOST ? static_cast<char*>(const_cast<void*>(host)) : static_cast<char*>(pointer(device));
  linear = {data, pitch ? pitch : width, width, height};
  pos = {x, y, z};
}

CopyWork rows(const CUDA_MEMCPY2D& p) {
  CUDA_MEMCPY3D q{};
  q.srcXInBytes = p.srcXInBytes;
  q.srcY = p.srcY;
  q.srcMemoryType = p.srcMemoryType;
  q.srcHost = p.srcHost;
  q.srcDevice = p.srcDevice;
  q.srcArray = p.srcArray;
  q.srcPitch = p.srcPitch;
  q.dstXInBytes = p.dstXInBytes;
  q.dstY = p.dstY;
  q.dstMemoryType = p.dstMemoryType;
  q.dstHost = p.dstHost;
  q.dstDevice = p.dstDevice;
  q.dstArray = p.dstArray;
  q.dstPitch = p.dstPitch;
  q.WidthInBytes = p.WidthInBytes;
  q.Height = p.Height;
  q.Depth = 1;
  return copy_box(q);
}

CUresult fill(CUdeviceptr to, unsigned value, unsigned element, size_t count, CUstream stream, bool blocking) {
  return call([&] { submit_fill(fill_bytes(pointer(to), value, element, count), stream, blocking); });
}
CUresult fill(CUdeviceptr to, size_t pitch, unsigned value, unsigned element, size_t width, size_t height,
              CUstream stream, bool blocking) {
  return call(
      [&] { submit_fill(fill_box(pointer(to), pitch, height, value, element, width, height, 1), stream, blocking); });
}

void attribute(void* data, CUpointer_attribute which, CUdeviceptr where) {
  const cudaPointerAttributes a = pointer_attributes(pointer(where));
  Allocation found;
  const bool known = find_allocation(uintptr_t(where), found);
  require(known);
  switch (which) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      *static_cast<CUcontext*>(data) = reinterpret_cast<CUcontext>(primary_context(found.device));
      return;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *static_cast<unsigned*>(data) =
          found.kind == MemoryKind::pinned ? unsigned{CU_MEMORYTYPE_HOST} : unsigned{CU_MEMORYTYPE_DEVICE};
      return;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      *static_cast<CUdeviceptr*>(data) = address(a.devicePointer);
      return;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      require(a.hostPointer != nullptr);
      *static_cast<void**>(data) = a.hostPointer;
      return;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      *static_cast<unsigned*>(data) = 0;
      return;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      *static_cast<unsigned long long*>(data) = found.number;
      return;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      *static_cast<unsigned*>(data) = found.kind == MemoryKind::managed;
      return;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *static_cast<int*>(data) = found.device;
      return;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      *static_cast<CUdeviceptr*>(data) = found.begin;
      return;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      *static_cast<size_t*>(data) = found.end - found.begin;
      return;
    case CU_POINTER_ATTRIBUTE_MAPPED:
      *static_cast<unsigned*>(data) = 1;
      return;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      *static_cast<unsigned*>(data) = found.kind == MemoryKind::device;
      return;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      *static_cast<unsigned*>(data) = CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
      return;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      *static_cast<unsigned long long*>(data) = 0;
      return;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      *static_cast<CUmemoryPool*>(data) = nullptr;
      return;
    default:
      fail(cudaErrorNotSupported);
  }
}

}  // namespace

CopyWork emulator::cuda::copy_box(const CUDA_MEMCPY3D& p) {
  cudaMemcpy3DParms q{};
  take_side(p.dstMemoryType, p.dstHost, p.dstDevice, p.dstArray, p.dstXInBytes, p.dstY, p.dstZ, p.dstPitch, p.WidthInBytes,
            p.dstHeight ? p.dstHeight : p.Height, q.dstArray, q.dstPtr, q.dstPos);
  take_side(p.srcMemoryType, p.srcHost, p.srcDevice, p.srcArray, p.srcXInBytes, p.srcY, p.srcZ, p.srcPitch, p.WidthInBytes,
            p.srcHeight ? p.srcHeight : p.Height, q.srcArray, q.srcPtr, q.srcPos);
  const cudaArray_t array = q.dstArray ? q.dstArray : q.srcArray;
  const size_t element = array ? array_of(array).element : 1;
  require(p.WidthInBytes % element == 0);
  q.extent = {p.WidthInBytes / element, p.Height, p.Depth};
  q.kind = cudaMemcpyDefault;
  return copy_box(q);
}

CUresult cuMemAlloc(CUdeviceptr* memory, size_t bytes) {
  return call([&] {
    require(bytes > 0);
    *memory = address(device_allocate(bytes));
  });
}
CUresult cuMemAllocPitch(CUdeviceptr* memory, size_t* pitch, size_t width, size_t height, unsigned) {
  return call([&] {
    *pitch = (width + 511) / 512 * 512;
    *memory = address(device_allocate(*pitch * height));
  });
}
CUresult cuMemAllocManaged(CUdeviceptr* memory, size_t bytes, unsigned flags) {
  return call([&] { *memory = address(managed_allocate(bytes, flags)); });
}
// Hints have no effect, as in the runtime, but a wrong pointer is told.
CUresult cuMemAdvise(CUdeviceptr memory, size_t, CUmem_advise, CUmemLocation) {
  return call([&] { require(pointer_attributes(pointer(memory)).type == cudaMemoryTypeManaged); });
}
CUresult cuMemPrefetchAsync(CUdeviceptr memory, size_t, CUmemLocation, unsigned, CUstream handle) {
  return call([&] {
    require(pointer_attributes(pointer(memory)).type == cudaMemoryTypeManaged);
    Lock lock = lock_state();
    Stream& stream = stream_of(handle);
    submit(lock, stream, make_work(EmptyWork{}, stream.device));
  });
}
CUresult cuStreamAttachMemAsync(CUstream handle, CUdeviceptr memory, size_t, unsigned) {
  return call([&] {
    const Lock lock = lock_state();
    stream_of(handle);
    require(pointer_attributes(pointer(memory)).type != cudaMemoryTypeDevice);
  });
}
CUresult cuMemAllocHost(void** memory, size_t bytes) {
  return call([&] { *memory = host_allocate(bytes, 0); });
}
CUresult cuMemHostAlloc(void** memory, size_t bytes, unsigned flags) {
  return call([&] { *memory = host_allocate(bytes, flags); });
}
CUresult cuMemFree(CUdeviceptr memory) {
  return call([&] { device_free(pointer(memory)); });
}
CUresult cuMemFreeHost(void* memory) {
  return call([&] { host_free(memory); });
}
CUresult cuMemHostRegister(void* memory, size_t bytes, unsigned flags) {
  return call([&] { host_register(memory, bytes, flags); });
}
CUresult cuMemHostUnregister(void* memory) {
  return call([&] { host_unregister(memory); });
}
CUresult cuMemHostGetDevicePointer(CUdeviceptr* on_device, void* memory, unsigned) {
  return call([&] { *on_device = address(host_device_pointer(memory)); });
}
CUresult cuMemHostGetFlags(unsigned* flags, void* memory) {
  return call([&] { *flags = host_flags(memory); });
}
CUresult cuMemGetInfo(size_t* free_bytes, size_t* total) {
  return call([&] { memory_info(current_device(), *free_bytes, *total); });
}
CUresult cuMemGetAddressRange(CUdeviceptr* begin, size_t* bytes, CUdeviceptr memory) {
  return call([&] {
    Allocation found;
    require(find_allocation(uintptr_t(memory), found), cudaErrorSymbolNotFound);
    if (begin) *begin = found.begin;
    if (bytes) *bytes = found.end - found.begin;
  });
}
CUresult cuMemAllocAsync(CUdeviceptr* memory, size_t bytes, CUstream stream) {
  return call([&] { *memory = address(stream_allocate(bytes, nullptr, stream)); });
}
CUresult cuMemAllocFromPoolAsync(CUdeviceptr* memory, size_t bytes, CUmemoryPool pool, CUstream stream) {
  return call(
      [&] { *memory = address(stream_allocate(bytes, pool_of(reinterpret_cast<cudaMemPool_t>(pool)), stream)); });
}
CUresult cuMemFreeAsync(CUdeviceptr memory, CUstream stream) {
  return call([&] { stream_free(pointer(memory), stream); });
}
CUresult cuPointerGetAttribute(void* data, CUpointer_attribute which, CUdeviceptr where) {
  return call([&] { attribute(data, which, where); });
}
CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* which, void** data, CUdeviceptr where) {
  return call([&] {
    Allocation found;
    const bool known = find_allocation(uintptr_t(where), found);
    // For memory unknown to CUDA all attributes are zero, and the call succeeds.
    for (unsigned i = 0; i < count; ++i) {
      if (known) {
        attribute(data[i], which[i], where);
      } else if (which[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) {
        *static_cast<int*>(data[i]) = -2;
      } else if (which[i] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE || which[i] == CU_POINTER_ATTRIBUTE_IS_MANAGED) {
        *static_cast<unsigned*>(data[i]) = 0;
      } else {
        *static_cast<void**>(data[i]) = nullptr;
      }
    }
  });
}

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copy(pointer(to), pointer(from), bytes, cudaMemcpyDefault);
}
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy(pointer(to), pointer(from), bytes, cudaMemcpyDefault, stream);
}
CUresult cuMemcpyHtoD(CUdeviceptr to, const void* from, size_t bytes) {
  return copy(pointer(to), from, bytes, cudaMemcpyHostToDevice);
}
CUresult cuMemcpyDtoH(void* to, CUdeviceptr from, size_t bytes) {
  return copy(to, pointer(from), bytes, cudaMemcpyDeviceToHost);
}
CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copy(pointer(to), pointer(from), bytes, cudaMemcpyDeviceToDevice);
}
CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  return copy(pointer(to), from, bytes, cudaMemcpyHostToDevice, stream);
}
CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy(to, pointer(from), bytes, cudaMemcpyDeviceToHost, stream);
}
CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy(pointer(to), pointer(from), bytes, cudaMemcpyDeviceToDevice, stream);
}
CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t bytes) {
  return copy(pointer(to), pointer(from), bytes, cudaMemcpyDefault);
}
CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t bytes, CUstream stream) {
  return copy(pointer(to), pointer(from), bytes, cudaMemcpyDefault, stream);
}
CUresult cuMemcpy2D(const CUDA_MEMCPY2D* p) {
  return call([&] { submit_copy(rows(*p), nullptr, true); });
}
CUresult cuMemcpy2DUnaligned(const CUDA_MEMCPY2D* p) { return cuMemcpy2D(p); }
CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D* p, CUstream stream) {
  return call([&] { submit_copy(rows(*p), stream, false); });
}
CUresult cuMemcpy3D(const CUDA_MEMCPY3D* p) {
  return call([&] { submit_copy(copy_box(*p), nullptr, true); });
}
CUresult cuMemcpy3DAsync(const CUDA_MEMCPY3D* p, CUstream stream) {
  return call([&] { submit_copy(copy_box(*p), stream, false); });
}

CUresult cuMemsetD8(CUdeviceptr to, unsigned char value, size_t count) {
  return fill(to, value, 1, count, nullptr, true);
}
CUresult cuMemsetD16(CUdeviceptr to, unsigned short value, size_t count) {
  return fill(to, value, 2, count, nullptr, true);
}
CUresult cuMemsetD32(CUdeviceptr to, unsigned value, size_t count) { return fill(to, value, 4, count, nullptr, true); }
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  return fill(to, value, 1, count, stream, false);
}
CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
  return fill(to, value, 2, count, stream, false);
}
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
  return fill(to, value, 4, count, stream, false);
}
CUresult cuMemsetD2D8(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height) {
  return fill(to, pitch, value, 1, width, height, nullptr, true);
}
CUresult cuMemsetD2D32(CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height) {
  return fill(to, pitch, value, 4, width, height, nullptr, true);
}
