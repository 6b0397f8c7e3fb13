// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>

namespace emulator::cuda {

// Physical memory and addresses apart (cuMemCreate, cuMemMap and the like). Errors: Error.

constexpr size_t kVirtualGranularity = size_t{2} << 20;

uint64_t physical_create(size_t bytes, int device, bool shareable);
/// A descriptor for another process, which the caller closes.
int physical_export(uint64_t handle);
uint64_t physical_import(int file, int device);
/// The memory is freed when the handle is released and nothing is mapped any more.
void physical_release(uint64_t handle);
struct PhysicalMemory {
  size_t bytes;
  int device;
  bool shareable;
};
PhysicalMemory physical_memory(uint64_t handle);

void* address_reserve(size_t bytes, size_t alignment);
void address_free(void* begin, size_t bytes);
void map_physical(void* begin, size_t bytes, size_t offset, uint64_t handle);
void unmap_physical(void* begin, size_t bytes);
/// Before this call the memory is inaccessible.
void set_access(void* begin, size_t bytes, bool readable, bool writable);
bool is_accessible(void* memory);
uint64_t physical_at(void* memory);

}  // namespace emulator::cuda
