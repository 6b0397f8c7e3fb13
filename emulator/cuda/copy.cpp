// SPDX-License-Identifier: Apache-2.0
#include "emulator/cuda/copy.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <unordered_set>

#include "emulator/cuda/capture.h"
#include "emulator/cuda/device.h"
#include "emulator/cuda/error.h"
#include "emulator/machine/memory.h"

namespace emulator::cuda {
namespace {

std::mutex arrays_mutex;
std::unordered_set<const void*>& live_arrays() {
  static auto* const all = new std::unordered_set<const void*>;
  return *all;
}

/// Known memory must hold the whole span; else the call fails at once, as CUDA's does.
void check_range(const void* memory, size_t bytes, bool must_be_device) {
  if (bytes == 0) return;
  require(memory != nullptr);
  Allocation found;
  const auto address = reinterpret_cast<uintptr_t>(memory);
  if (find_allocation(address, found)) {
    if (!found.holds(address, bytes)) {
      fail(cudaErrorInvalidValue, cat("a copy or a fill of ", bytes, " bytes begins at ", describe_address(address)));
    }
    return;
  }
  if (must_be_device) {
    fail(cudaErrorInvalidValue, cat("a copy or a fill names as device memory ", describe_address(address)));
  }
}

void check_kind(const CopyWork& copy, cudaMemcpyKind kind) {
  require(kind >= cudaMemcpyHostToHost && kind <= cudaMemcpyDefault, cudaErrorInvalidMemcpyDirection);
  const bool coherent = Device::current().gpu().coherent_host();
  check_range(copy.to, copy.to_span(),
              (kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice) && !coherent);
  check_range(copy.from, copy.from_span(),
              (kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice) && !coherent);
}

struct Side {
  char* data = nullptr;
  size_t pitch = 0, slice = 0;
};

Side side_of(cudaArray_const_t array, const cudaPitchedPtr& pointer, const cudaPos& pos, const cudaExtent& extent, size_t element) {
  Side side;
  if (array) {
    Array& a = array_of(array);
    const auto fits = [](size_t at, size_t count, size_t size) {
      const size_t most = std::max<size_t>(1, size);  // 0: the array has no such dimension
      return at <= most && count <= most - at;
    };
    require(fits(pos.x, extent.width, a.extent.width) && fits(pos.y, extent.height, a.extent.height) &&
            fits(pos.z, extent.depth, a.extent.depth));
    side = {a.data + pos.z * a.slice + pos.y * a.pitch + pos.x * element, a.pitch, a.slice};
  } else {
    const size_t rows = pointer.ysize ? pointer.ysize : 1;
    side.pitch = pointer.pitch;
    side.slice = pointer.pitch * rows;
    side.data = static_cast<char*>(pointer.ptr) + pos.z * side.slice + pos.y * side.pitch + pos.x;
  }
  return side;
}

}  // namespace

Array& array_of(cudaArray_const_t handle) {
  const std::lock_guard lock(arrays_mutex);
  require(live_arrays().contains(handle), cudaErrorInvalidResourceHandle);
  return *reinterpret_cast<Array*>(const_cast<cudaArray_t>(handle));
}

cudaArray_t array_create(const cudaChannelFormatDesc& format, const cudaExtent& extent, unsigned flags) {
  const size_t element = size_t(format.x + format.y + format.z + format.w) / 8;
  require(element > 0 && extent.width > 0);
  if (flags & (cudaArraySparse | cudaArrayDeferredMapping)) fail(cudaErrorNotSupported, "sparse arrays are not emulated");
  if (flags & cudaArrayCubemap) {
    require(extent.width == extent.height && extent.depth >= 6 && extent.depth % 6 == 0);
    require((flags & cudaArrayLayered) != 0 || extent.depth == 6);
  }
  auto* const array = new Array{format, extent, flags, nullptr, element, 0, 0, current_device()};
  array->pitch = (extent.width * element + 31) / 32 * 32;
  array->slice = array->pitch * std::max<size_t>(extent.height, 1);
  array->data = static_cast<char*>(
      allocate(array->slice * std::max<size_t>(extent.depth, 1), MemoryKind::device, current_device()));
  if (!array->data) {
    delete array;
    fail(cudaErrorMemoryAllocation);
  }
  const std::lock_guard lock(arrays_mutex);
  live_arrays().insert(array);
  return reinterpret_cast<cudaArray_t>(array);
}

void array_destroy(cudaArray_t handle) {
  if (!handle) return;
  Array& array = array_of(handle);
  {
    Lock lock = lock_state();
    device_synchronize(lock, array.device);
  }
  release(array.data, MemoryKind::device);
  const std::lock_guard lock(arrays_mutex);
  live_arrays().erase(handle);
  delete &array;
}

Home home_of(const void* pointer) {
  Allocation found;
  if (!find_allocation(reinterpret_cast<uintptr_t>(pointer), found)) return Home::pageable;
  return found.kind == MemoryKind::pinned ? Home::pinned : Home::device;
}

cudaMemcpy3DParms said_of(const CopyWork& copy, cudaMemcpyKind kind) {
  cudaMemcpy3DParms said{};
  said.srcPtr = {const_cast<char*>(copy.from), copy.from_pitch, copy.width, copy.height};
  said.dstPtr = {copy.to, copy.to_pitch, copy.width, copy.height};
  said.extent = {copy.width, copy.height, copy.depth};
  said.kind = kind;
  return said;
}

CopyWork copy_bytes(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  CopyWork copy;
  copy.to = static_cast<char*>(to);
  copy.from = static_cast<const char*>(from);
  copy.to_pitch = copy.from_pitch = copy.to_slice = copy.from_slice = copy.width = bytes;
  check_kind(copy, kind);
  copy.said = said_of(copy, kind);
  return copy;
}

CopyWork copy_rows(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                   cudaMemcpyKind kind) {
  if (height > 1) require(width <= to_pitch && width <= from_pitch, cudaErrorInvalidPitchValue);
  CopyWork copy;
  copy.to = static_cast<char*>(to);
  copy.from = static_cast<const char*>(from);
  copy.to_pitch = to_pitch;
  copy.from_pitch = from_pitch;
  copy.to_slice = to_pitch * height;
  copy.from_slice = from_pitch * height;
  copy.width = width;
  copy.height = height;
  check_kind(copy, kind);
  copy.said = said_of(copy, kind);
  return copy;
}

CopyWork copy_box(const cudaMemcpy3DParms& p) {
  require((p.srcArray != nullptr) != (p.srcPtr.ptr != nullptr) && (p.dstArray != nullptr) != (p.dstPtr.ptr != nullptr));
  // With an array in play, x and the width count its elements; else bytes.
  size_t element = 1;
  if (p.srcArray) element = array_of(p.srcArray).element;
  if (p.dstArray) {
    const size_t other = array_of(p.dstArray).element;
    require(!p.srcArray || element == other);
    element = other;
  }
  const Side to = side_of(p.dstArray, p.dstPtr, p.dstPos, p.extent, element),
             from = side_of(p.srcArray, p.srcPtr, p.srcPos, p.extent, element);
  CopyWork copy;
  copy.to = to.data;
  copy.to_pitch = to.pitch;
  copy.to_slice = to.slice;
  copy.from = from.data;
  copy.from_pitch = from.pitch;
  copy.from_slice = from.slice;
  copy.width = p.extent.width * element;
  copy.height = p.extent.height;
  copy.depth = p.extent.depth;
  if (copy.height > 1) require(copy.width <= to.pitch && copy.width <= from.pitch, cudaErrorInvalidPitchValue);
  check_kind(copy, p.kind);
  copy.said = p;
  return copy;
}

// When the host may go on: CUDA Runtime API, "API synchronization behavior".
void submit_copy(CopyWork copy, cudaStream_t handle, bool blocking) {
  Lock lock = lock_state();
  Stream& stream = stream_of(handle);
  if (blocking) {
    // The host would have to wait for a stream that only records.
    if (stream.capture) refuse_while_capturing(stream);
    refuse_unsafe(lock);
  }
  if (copy.to_span() == 0) return;
  const Home to = home_of(copy.to), from = home_of(copy.from);
  bool wait = false;
  if (!stream.capture) {
    refuse_implicit(stream);
    // A GPU that shares the host's page tables reads pageable memory itself, when the copy runs.
    const bool staged = from == Home::pageable && !Device::get(stream.device).gpu().coherent_host();
    if (to == Home::device && staged) {
      // Staged: the source may change when the call returns, but the copy may not have arrived.
      if (blocking) scheduler().wait(lock, everything_before(stream));
      copy.staged = std::make_shared<std::string>(copy.from, copy.from_span());
    } else if (to == Home::pageable) {
      wait = true;
    } else if (to == Home::pinned) {
      wait = blocking || from == Home::pageable;
    } else {
      wait = blocking && from != Home::device;
    }
  }
  const int device = stream.device;
  submit(lock, stream, make_work(std::move(copy), device));
  if (wait) {
    const Op last = stream.last;
    scheduler().wait(lock, last);
    require(!Device::get(device).faulted(), Device::get(device).fault());
  }
}

FillWork fill_box(void* to, size_t pitch, size_t rows_of_slice, unsigned value, unsigned element, size_t width,
                  size_t height, size_t depth) {
  if (height > 1) require(width * element <= pitch, cudaErrorInvalidPitchValue);
  FillWork fill{static_cast<char*>(to), pitch, pitch * rows_of_slice, value, element, width, height, depth};
  check_range(to, CopyWork::span(width * element, height, depth, pitch, fill.slice),
              !Device::current().gpu().coherent_host());
  return fill;
}

FillWork fill_bytes(void* to, unsigned value, unsigned element, size_t count) {
  return fill_box(to, count * element, 1, value, element, count, 1, 1);
}

void submit_fill(FillWork fill, cudaStream_t handle, bool blocking) {
  Lock lock = lock_state();
  Stream& stream = stream_of(handle);
  if (blocking) {
    if (stream.capture) refuse_while_capturing(stream);
    refuse_unsafe(lock);
  }
  if (fill.width == 0 || fill.height == 0 || fill.depth == 0) return;
  const bool wait = blocking && home_of(fill.to) == Home::pinned;
  const int device = stream.device;
  submit(lock, stream, make_work(std::move(fill), device));
  if (wait) scheduler().wait(lock, Op(stream.last));
}

}  // namespace emulator::cuda
