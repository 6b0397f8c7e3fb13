// SPDX-License-Identifier: Apache-2.0
#include "emulator/cuda/virtual_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "emulator/cuda/device.h"
#include "emulator/cuda/error.h"
#include "emulator/cuda/stream.h"
#include "emulator/machine/fresh.h"
#include "emulator/machine/memory.h"

namespace emulator::cuda {
namespace {

struct Physical {
  int file;
  size_t bytes;
  int device;
  bool shareable;
  int holders = 1;
  int mappings = 0;
};

struct Mapping {
  uintptr_t end;
  uint64_t physical;
  size_t offset;
  bool accessible = false;
};

/// Under the state's lock.
struct Books {
  std::map<uint64_t, Physical> physical;
  std::map<uintptr_t, uintptr_t> reserved;
  std::map<uintptr_t, Mapping> mapped;
  uint64_t last = 0;
};
Books& books() {
  static auto* const all = new Books;
  return *all;
}

uintptr_t address_of(const void* p) { return reinterpret_cast<uintptr_t>(p); }
bool is_whole(size_t bytes) { return bytes > 0 && bytes % kVirtualGranularity == 0; }

Physical& physical_of(uint64_t handle) {
  const auto found = books().physical.find(handle);
  require(found != books().physical.end());
  return found->second;
}

void let_go(uint64_t handle) {
  const auto found = books().physical.find(handle);
  if (found == books().physical.end() || found->second.holders > 0 || found->second.mappings > 0) return;
  close(found->second.file);
  books().physical.erase(found);
}

/// Calls f(begin, mapping) for the mappings that fill [begin, begin + bytes) without a gap.
template <class F>
void for_each_mapping(void* begin, size_t bytes, F f) {
  uintptr_t at = address_of(begin);
  const uintptr_t end = at + bytes;
  while (at < end) {
    const auto found = books().mapped.find(at);
    require(found != books().mapped.end() && found->second.end <= end);
    at = found->second.end;
    f(found->first, found->second);
  }
}

uint64_t add(Physical physical) {
  const uint64_t handle = ++books().last;
  books().physical.emplace(handle, physical);
  return handle;
}

}  // namespace

uint64_t physical_create(size_t bytes, int device, bool shareable) {
  require(is_whole(bytes));
  require(device >= 0 && device < Device::count(), cudaErrorInvalidDevice);
  size_t free_bytes = 0, total = 0;
  memory_info(device, free_bytes, total);
  require(bytes <= free_bytes, cudaErrorMemoryAllocation);
  const SharedFile file = create_shared_file(bytes);
  require(file.file >= 0, cudaErrorMemoryAllocation);
  // As in every allocation, unwritten memory is NaN.
  if (void* const all = map_file(file.file, bytes)) {
    std::memset(all, 0xff, bytes);
    munmap(all, bytes);
  }
  const Lock lock = lock_state();
  return add({file.file, bytes, device, shareable});
}

int physical_export(uint64_t handle) {
  const Lock lock = lock_state();
  const Physical& physical = physical_of(handle);
  require(physical.shareable);
  const int file = fcntl(physical.file, F_DUPFD_CLOEXEC, 0);
  require(file >= 0, cudaErrorUnknown);
  return file;
}

uint64_t physical_import(int file, int device) {
  struct stat status;
  require(fstat(file, &status) == 0 && is_whole(size_t(status.st_size)));
  const int own = fcntl(file, F_DUPFD_CLOEXEC, 0);
  require(own >= 0, cudaErrorUnknown);
  const Lock lock = lock_state();
  return add({own, size_t(status.st_size), device, true});
}

void physical_release(uint64_t handle) {
  const Lock lock = lock_state();
  Physical& physical = physical_of(handle);
  require(physical.holders > 0);
  --physical.holders;
  let_go(handle);
}

PhysicalMemory physical_memory(uint64_t handle) {
  const Lock lock = lock_state();
  const Physical& physical = physical_of(handle);
  return {physical.bytes, physical.device, physical.shareable};
}

void* address_reserve(size_t bytes, size_t alignment) {
  require(is_whole(bytes) && (alignment & (alignment - 1)) == 0);
  void* const begin = reserve_addresses(bytes, std::max(alignment, kVirtualGranularity));
  require(begin != nullptr, cudaErrorMemoryAllocation);
  const Lock lock = lock_state();
  books().reserved[address_of(begin)] = address_of(begin) + bytes;
  return begin;
}

void address_free(void* begin, size_t bytes) {
  const Lock lock = lock_state();
  const auto found = books().reserved.find(address_of(begin));
  require(found != books().reserved.end() && found->second == address_of(begin) + bytes);
  const auto inside = books().mapped.lower_bound(address_of(begin));
  if (inside != books().mapped.end() && inside->first < found->second)
    fail(cudaErrorInvalidValue, "cuMemAddressFree of addresses where memory is still mapped");
  books().reserved.erase(found);
  free_addresses(begin, bytes);
}

void map_physical(void* begin, size_t bytes, size_t offset, uint64_t handle) {
  const Lock lock = lock_state();
  Physical& physical = physical_of(handle);
  const uintptr_t at = address_of(begin), end = at + bytes;
  require(is_whole(bytes) && at % kVirtualGranularity == 0 && offset % kVirtualGranularity == 0 &&
          offset + bytes <= physical.bytes);
  auto reserved = books().reserved.upper_bound(at);
  require(reserved != books().reserved.begin() && end <= std::prev(reserved)->second);
  const auto next = books().mapped.lower_bound(end);
  require(next == books().mapped.begin() || std::prev(next)->second.end <= at);  // nothing is mapped yet
  require(map_file(physical.file, bytes, begin, offset) != nullptr && mprotect(begin, bytes, PROT_NONE) == 0,
          cudaErrorMemoryAllocation);
  books().mapped[at] = {end, handle, offset};
  ++physical.mappings;
}

void unmap_physical(void* begin, size_t bytes) {
  Lock lock = lock_state();
  for (int device = 0; device < Device::count(); ++device) device_synchronize(lock, device);
  std::map<uintptr_t, uint64_t> ending;
  for_each_mapping(begin, bytes, [&](uintptr_t at, const Mapping& m) { ending[at] = m.physical; });
  unregister_mapped(begin, bytes);
  mmap(begin, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  for (const auto& [at, handle] : ending) {
    books().mapped.erase(at);
    --physical_of(handle).mappings;
    let_go(handle);
  }
}

void set_access(void* begin, size_t bytes, bool readable, bool writable) {
  if (readable && !writable) fail(cudaErrorNotSupported, "mapped memory that is only readable is not emulated");
  const Lock lock = lock_state();
  for_each_mapping(begin, bytes, [&](uintptr_t at, Mapping& m) {
    void* const memory = reinterpret_cast<void*>(at);
    require(mprotect(memory, m.end - at, readable ? PROT_READ | PROT_WRITE : PROT_NONE) == 0);
    m.accessible = readable;
    if (!readable) return unregister_mapped(memory, m.end - at);
    register_mapped(memory, m.end - at, physical_of(m.physical).device);
    mark_written(memory, m.end - at);  // perhaps by another mapping
  });
}

bool is_accessible(void* memory) {
  const Lock lock = lock_state();
  const auto next = books().mapped.upper_bound(address_of(memory));
  require(next != books().mapped.begin() && address_of(memory) < std::prev(next)->second.end);
  return std::prev(next)->second.accessible;
}

uint64_t physical_at(void* memory) {
  const Lock lock = lock_state();
  const auto next = books().mapped.upper_bound(address_of(memory));
  require(next != books().mapped.begin() && address_of(memory) < std::prev(next)->second.end);
  const uint64_t handle = std::prev(next)->second.physical;
  ++physical_of(handle).holders;
  return handle;
}

}  // namespace emulator::cuda
