// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "emulator/cuda/runtime/call.h"

using namespace emulator;
using namespace emulator::cuda;

namespace {

constexpr size_t kPitch = 512;
size_t pitch_of(size_t width) { return (width + kPitch - 1) / kPitch * kPitch; }

cudaMemcpy3DParms of_peer(const cudaMemcpy3DPeerParms& p) {
  cudaMemcpy3DParms q{};
  q.srcArray = p.srcArray;
  q.srcPos = p.srcPos;
  q.srcPtr = p.srcPtr;
  q.dstArray = p.dstArray;
  q.dstPos = p.dstPos;
  q.dstPtr = p.dstPtr;
  q.extent = p.extent;
  q.kind = cudaMemcpyDefault;
  return q;
}

/// Rows between an array and linear memory.
cudaMemcpy3DParms of_rows(cudaArray_const_t array, size_t x, size_t y, void* linear, size_t pitch, size_t width,
                          size_t height, cudaMemcpyKind kind, bool to_array) {
  const size_t element = array_of(array).element;
  require(x % element == 0 && width % element == 0);
  cudaMemcpy3DParms p{};
  const cudaPos pos{x / element, y, 0};
  const cudaPitchedPtr rows{linear, pitch, width, height};
  if (to_array) {
    p.dstArray = const_cast<cudaArray_t>(array);
    p.dstPos = pos;
    p.srcPtr = rows;
  } else {
    p.srcArray = const_cast<cudaArray_t>(array);
    p.srcPos = pos;
    p.dstPtr = rows;
  }
  p.extent = {width / element, height, 1};
  p.kind = kind;
  return p;
}

/// How many of `bytes` a row takes.
size_t row_bytes(cudaArray_const_t handle, size_t x, size_t bytes) {
  const Array& array = array_of(handle);
  const size_t row = array.extent.width * array.element;
  require(bytes > 0);
  if (x + bytes <= row) return bytes;
  if (x != 0 || bytes % row != 0)
    fail(cudaErrorNotSupported, "a copy of parts of several rows of an array is not emulated");
  return row;
}

}  // namespace

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  return runtime_call([&] {
    require(memory != nullptr);
    *memory = nullptr;
    *memory = device_allocate(bytes);
  });
}
cudaError_t cudaMallocHost(void** memory, size_t bytes) {
  return runtime_call([&] { *memory = host_allocate(bytes, 0); });
}
cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned flags) {
  return runtime_call([&] { *memory = host_allocate(bytes, flags); });
}
cudaError_t cudaMallocManaged(void** memory, size_t bytes, unsigned flags) {
  return runtime_call([&] { *memory = managed_allocate(bytes, flags); });
}
cudaError_t cudaFree(void* memory) {
  return runtime_call([&] { device_free(memory); });
}
cudaError_t cudaFreeHost(void* memory) {
  return runtime_call([&] { host_free(memory); });
}
cudaError_t cudaHostRegister(void* memory, size_t bytes, unsigned flags) {
  return runtime_call([&] { host_register(memory, bytes, flags); });
}
cudaError_t cudaHostUnregister(void* memory) {
  return runtime_call([&] { host_unregister(memory); });
}
cudaError_t cudaHostGetDevicePointer(void** on_device, void* memory, unsigned flags) {
  return runtime_call([&] {
    require(flags == 0);
    *on_device = host_device_pointer(memory);
  });
}
cudaError_t cudaHostGetFlags(unsigned* flags, void* memory) {
  return runtime_call([&] { *flags = host_flags(memory); });
}
cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total) {
  return runtime_call([&] {
    size_t f = 0, t = 0;
    memory_info(current_device(), f, t);
    if (free_bytes) *free_bytes = f;
    if (total) *total = t;
  });
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  return runtime_call([&] { *attributes = pointer_attributes(pointer); });
}
cudaError_t cudaMallocPitch(void** memory, size_t* pitch, size_t width, size_t height) {
  return runtime_call([&] {
    *pitch = pitch_of(width);
    *memory = device_allocate(*pitch * height);
  });
}
cudaError_t cudaMalloc3D(cudaPitchedPtr* memory, cudaExtent extent) {
  return runtime_call([&] {
    const size_t pitch = pitch_of(extent.width);
    *memory = {device_allocate(pitch * extent.height * extent.depth), pitch, extent.width, extent.height};
  });
}
cudaError_t cudaMallocArray(cudaArray_t* array, const cudaChannelFormatDesc* format, size_t width, size_t height,
                            unsigned flags) {
  return runtime_call([&] { *array = array_create(*format, {width, height, 0}, flags); });
}
cudaError_t cudaMalloc3DArray(cudaArray_t* array, const cudaChannelFormatDesc* format, cudaExtent extent,
                              unsigned flags) {
  return runtime_call([&] { *array = array_create(*format, extent, flags); });
}
cudaError_t cudaFreeArray(cudaArray_t array) {
  return runtime_call([&] { array_destroy(array); });
}
cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc* format, cudaExtent* extent, unsigned* flags, cudaArray_t handle) {
  return runtime_call([&] {
    const Array& array = array_of(handle);
    if (format) *format = array.format;
    if (extent) *extent = array.extent;
    if (flags) *flags = array.flags;
  });
}
cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc* format, cudaArray_const_t array) {
  return runtime_call([&] { *format = array_of(array).format; });
}
cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind kind) {
  return {x, y, z, w, kind};
}

cudaError_t cudaMallocAsync(void** memory, size_t bytes, cudaStream_t stream) {
  return runtime_call([&] { *memory = stream_allocate(bytes, nullptr, stream); });
}
cudaError_t cudaMallocFromPoolAsync(void** memory, size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
  return runtime_call([&] { *memory = stream_allocate(bytes, pool_of(pool), stream); });
}
cudaError_t cudaFreeAsync(void* memory, cudaStream_t stream) {
  return runtime_call([&] { stream_free(memory, stream); });
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return runtime_call([&] { submit_copy(copy_bytes(to, from, bytes, kind), nullptr, true); });
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return runtime_call([&] { submit_copy(copy_bytes(to, from, bytes, kind), stream, false); });
}
cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device, size_t bytes) {
  return runtime_call([&] {
    Device::get(to_device);
    Device::get(from_device);
    submit_copy(copy_bytes(to, from, bytes, cudaMemcpyDefault), nullptr, true);
  });
}
cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, size_t bytes,
                                cudaStream_t stream) {
  return runtime_call([&] {
    Device::get(to_device);
    Device::get(from_device);
    submit_copy(copy_bytes(to, from, bytes, cudaMemcpyDefault), stream, false);
  });
}
cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                         cudaMemcpyKind kind) {
  return runtime_call(
      [&] { submit_copy(copy_rows(to, to_pitch, from, from_pitch, width, height, kind), nullptr, true); });
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  return runtime_call(
      [&] { submit_copy(copy_rows(to, to_pitch, from, from_pitch, width, height, kind), stream, false); });
}
cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* p) {
  return runtime_call([&] { submit_copy(copy_box(*p), nullptr, true); });
}
cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* p, cudaStream_t stream) {
  return runtime_call([&] { submit_copy(copy_box(*p), stream, false); });
}
cudaError_t cudaMemcpy3DPeer(const cudaMemcpy3DPeerParms* p) {
  return runtime_call([&] { submit_copy(copy_box(of_peer(*p)), nullptr, true); });
}
cudaError_t cudaMemcpy3DPeerAsync(const cudaMemcpy3DPeerParms* p, cudaStream_t stream) {
  return runtime_call([&] { submit_copy(copy_box(of_peer(*p)), stream, false); });
}
cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, size_t bytes, size_t offset, cudaMemcpyKind kind) {
  return runtime_call(
      [&] { submit_copy(copy_bytes(in_symbol(symbol, offset, bytes), from, bytes, kind), nullptr, true); });
}
cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, size_t bytes, size_t offset, cudaMemcpyKind kind) {
  return runtime_call(
      [&] { submit_copy(copy_bytes(to, in_symbol(symbol, offset, bytes), bytes, kind), nullptr, true); });
}
cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* from, size_t bytes, size_t offset,
                                    cudaMemcpyKind kind, cudaStream_t stream) {
  return runtime_call(
      [&] { submit_copy(copy_bytes(in_symbol(symbol, offset, bytes), from, bytes, kind), stream, false); });
}
cudaError_t cudaMemcpyFromSymbolAsync(void* to, const void* symbol, size_t bytes, size_t offset, cudaMemcpyKind kind,
                                      cudaStream_t stream) {
  return runtime_call(
      [&] { submit_copy(copy_bytes(to, in_symbol(symbol, offset, bytes), bytes, kind), stream, false); });
}
cudaError_t cudaMemcpy2DToArray(cudaArray_t array, size_t x, size_t y, const void* from, size_t pitch, size_t width,
                                size_t height, cudaMemcpyKind kind) {
  return runtime_call([&] {
    submit_copy(copy_box(of_rows(array, x, y, const_cast<void*>(from), pitch, width, height, kind, true)), nullptr,
                true);
  });
}
cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t array, size_t x, size_t y, const void* from, size_t pitch,
                                     size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  return runtime_call([&] {
    submit_copy(copy_box(of_rows(array, x, y, const_cast<void*>(from), pitch, width, height, kind, true)), stream,
                false);
  });
}
cudaError_t cudaMemcpy2DFromArray(void* to, size_t pitch, cudaArray_const_t array, size_t x, size_t y, size_t width,
                                  size_t height, cudaMemcpyKind kind) {
  return runtime_call(
      [&] { submit_copy(copy_box(of_rows(array, x, y, to, pitch, width, height, kind, false)), nullptr, true); });
}
cudaError_t cudaMemcpy2DFromArrayAsync(void* to, size_t pitch, cudaArray_const_t array, size_t x, size_t y,
                                       size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  return runtime_call(
      [&] { submit_copy(copy_box(of_rows(array, x, y, to, pitch, width, height, kind, false)), stream, false); });
}

cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t to, size_t to_x, size_t to_y, cudaArray_const_t from, size_t from_x,
                                     size_t from_y, size_t width, size_t height, cudaMemcpyKind kind) {
  return runtime_call([&] {
    const size_t element = array_of(to).element;
    require(to_x % element == 0 && from_x % element == 0 && width % element == 0);
    cudaMemcpy3DParms p{};
    p.dstArray = to;
    p.dstPos = {to_x / element, to_y, 0};
    p.srcArray = const_cast<cudaArray_t>(from);
    p.srcPos = {from_x / element, from_y, 0};
    p.extent = {width / element, height, 1};
    p.kind = kind;
    submit_copy(copy_box(p), nullptr, true);
  });
}
// Bytes that follow each other over the rows of an array: whole rows, or a part of one.
cudaError_t cudaMemcpyToArray(cudaArray_t array, size_t x, size_t y, const void* from, size_t bytes,
                              cudaMemcpyKind kind) {
  return runtime_call([&] {
    const size_t row = row_bytes(array, x, bytes);
    submit_copy(copy_box(of_rows(array, x, y, const_cast<void*>(from), row, row, bytes / row, kind, true)), nullptr,
                true);
  });
}
cudaError_t cudaMemcpyFromArray(void* to, cudaArray_const_t array, size_t x, size_t y, size_t bytes,
                                cudaMemcpyKind kind) {
  return runtime_call([&] {
    const size_t row = row_bytes(array, x, bytes);
    submit_copy(copy_box(of_rows(array, x, y, to, row, row, bytes / row, kind, false)), nullptr, true);
  });
}

cudaError_t cudaMemset(void* to, int value, size_t count) {
  return runtime_call([&] { submit_fill(fill_bytes(to, unsigned(value), 1, count), nullptr, true); });
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t count, cudaStream_t stream) {
  return runtime_call([&] { submit_fill(fill_bytes(to, unsigned(value), 1, count), stream, false); });
}
cudaError_t cudaMemset2D(void* to, size_t pitch, int value, size_t width, size_t height) {
  return runtime_call(
      [&] { submit_fill(fill_box(to, pitch, height, unsigned(value), 1, width, height, 1), nullptr, true); });
}
cudaError_t cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream) {
  return runtime_call(
      [&] { submit_fill(fill_box(to, pitch, height, unsigned(value), 1, width, height, 1), stream, false); });
}
cudaError_t cudaMemset3D(cudaPitchedPtr to, int value, cudaExtent extent) {
  return runtime_call([&] {
    submit_fill(fill_box(to.ptr, to.pitch, to.ysize, unsigned(value), 1, extent.width, extent.height, extent.depth),
                nullptr, true);
  });
}
cudaError_t cudaMemset3DAsync(cudaPitchedPtr to, int value, cudaExtent extent, cudaStream_t stream) {
  return runtime_call([&] {
    submit_fill(fill_box(to.ptr, to.pitch, to.ysize, unsigned(value), 1, extent.width, extent.height, extent.depth),
                stream, false);
  });
}

// Managed memory is where it is: hints have no effect, but a wrong pointer is told.
cudaError_t cudaMemAdvise(const void* memory, size_t, cudaMemoryAdvise, cudaMemLocation) {
  return runtime_call([&] { require(pointer_attributes(memory).type == cudaMemoryTypeManaged); });
}
cudaError_t cudaMemPrefetchAsync(const void* memory, size_t, cudaMemLocation, unsigned, cudaStream_t handle) {
  return runtime_call([&] {
    require(pointer_attributes(memory).type == cudaMemoryTypeManaged);
    Lock lock = lock_state();
    Stream& stream = stream_of(handle);
    submit(lock, stream, make_work(EmptyWork{}, stream.device));
  });
}
