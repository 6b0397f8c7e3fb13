// SPDX-License-Identifier: Apache-2.0
#include "emulator/cuda/memory_calls.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "emulator/cuda/capture.h"
#include "emulator/cuda/device.h"
#include "emulator/cuda/error.h"
#include "emulator/cuda/kernels.h"
#include "emulator/cuda/stream_check.h"
#include "emulator/machine/memory.h"

namespace emulator::cuda {
namespace {

// Under the state's lock.
struct Books {
  std::unordered_map<const void*, unsigned> host_flags;  ///< for pinned memory
  std::unordered_map<const void*, Pool*> from_pool;      ///< for stream-ordered memory
  std::unordered_set<const void*> pools;
  std::mutex graphs_mutex;  ///< a graph may end while the state is locked or not
  std::unordered_set<const void*> of_graphs;
};
Books& books() {
  static Books* const all = new Books;
  return *all;
}

void* take(size_t bytes, MemoryKind kind) {
  {
    const Lock lock = lock_state();
    Device::current().active = true;
    refuse_unsafe(lock);
  }
  if (bytes == 0) return nullptr;
  void* const memory = allocate(bytes, kind, current_device());
  require(memory != nullptr, cudaErrorMemoryAllocation);
  return memory;
}

/// Frees wait for all work of a device: it may use the memory.
void drain(Lock& lock, int device) {
  refuse_unsafe(lock);
  device_synchronize(lock, device);
}

[[noreturn]] void refuse_free(const void* memory) {
  fail(cudaErrorInvalidValue, cat("a free of ", describe_address(reinterpret_cast<uintptr_t>(memory))));
}

bool find_begin(const void* memory, Allocation& found) {
  const auto address = reinterpret_cast<uintptr_t>(memory);
  return find_allocation(address, found) && found.begin == address;
}

bool is_of_graph(const void* memory) {
  const std::lock_guard lock(books().graphs_mutex);
  return books().of_graphs.contains(memory);
}

void give_back(Pool* pool, size_t bytes) {
  if (!pool) return;
  pool->used -= std::min<uint64_t>(pool->used, bytes);
  pool->reserved = std::max(pool->used, std::min(pool->reserved, pool->release_threshold));
}

}  // namespace

void* device_allocate(size_t bytes) { return take(bytes, MemoryKind::device); }

void* managed_allocate(size_t bytes, unsigned flags) {
  require(bytes > 0 && (flags == cudaMemAttachGlobal || flags == cudaMemAttachHost));
  return take(bytes, MemoryKind::managed);
}

void* host_allocate(size_t bytes, unsigned flags) {
  require((flags & ~unsigned{cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined}) == 0);
  void* const memory = take(bytes, MemoryKind::pinned);
  const Lock lock = lock_state();
  if (memory) books().host_flags[memory] = flags;
  return memory;
}

void device_free(void* memory) {
  Lock lock = lock_state();
  Device::current().active = true;
  if (!memory) return;
  Allocation found;
  if (!find_begin(memory, found) || (found.kind != MemoryKind::device && found.kind != MemoryKind::managed)) {
    refuse_free(memory);
  }
  drain(lock, found.device);
  if (is_of_graph(memory)) return;  // its next launch has it again.
  // Other devices may use it, too, and this call does not wait for them.
  if (stream_check::on())
    stream_check::host_frees("cudaFree", memory, found.end - found.begin, stream_check::host_clock());
  if (!release(memory, found.kind)) refuse_free(memory);
  const auto pooled = books().from_pool.find(memory);
  if (pooled != books().from_pool.end()) {
    give_back(pooled->second, found.end - found.begin);
    books().from_pool.erase(pooled);
  }
}

void host_free(void* memory) {
  if (!memory) return;
  Lock lock = lock_state();
  Allocation found;
  if (!find_begin(memory, found) || found.kind != MemoryKind::pinned) refuse_free(memory);
  refuse_unsafe(lock);
  std::vector<uint32_t> knew;
  if (stream_check::on()) knew = stream_check::host_clock();
  for (int device = 0; device < Device::count(); ++device) device_synchronize(lock, device);
  if (stream_check::on()) stream_check::host_frees("cudaFreeHost", memory, found.end - found.begin, knew);
  if (!release(memory, MemoryKind::pinned)) refuse_free(memory);
  books().host_flags.erase(memory);
}

void host_register(void* memory, size_t bytes, unsigned flags) {
  require(memory != nullptr && bytes > 0);
  const Lock lock = lock_state();
  Allocation found;
  require(!find_allocation(reinterpret_cast<uintptr_t>(memory), found), cudaErrorHostMemoryAlreadyRegistered);
  register_range(memory, bytes, MemoryKind::pinned, current_device());
  books().host_flags[memory] = flags;
}

void host_unregister(void* memory) {
  Lock lock = lock_state();
  Allocation found;
  const bool known = find_begin(memory, found);
  std::vector<uint32_t> knew;
  if (stream_check::on()) knew = stream_check::host_clock();
  for (int device = 0; device < Device::count(); ++device) device_synchronize(lock, device);
  if (known && stream_check::on())
    stream_check::host_frees("cudaHostUnregister", memory, found.end - found.begin, knew);
  require(unregister_range(memory), cudaErrorHostMemoryNotRegistered);
  books().host_flags.erase(memory);
}

unsigned host_flags(void* memory) {
  const Lock lock = lock_state();
  const auto found = books().host_flags.find(memory);
  require(found != books().host_flags.end());
  return found->second | cudaHostAllocMapped;
}

void* host_device_pointer(void* memory) {
  Allocation found;
  require(find_allocation(reinterpret_cast<uintptr_t>(memory), found) && found.kind == MemoryKind::pinned);
  return memory;
}

std::shared_ptr<void> graph_memory(void* memory) {
  const std::lock_guard lock(books().graphs_mutex);
  books().of_graphs.insert(memory);
  return {memory, [](void* m) {
            {
              const std::lock_guard inner(books().graphs_mutex);
              books().of_graphs.erase(m);
            }
            release(m, MemoryKind::device);
          }};
}

void* stream_allocate(size_t bytes, Pool* pool, cudaStream_t handle) {
  Lock lock = lock_state();
  Stream& stream = stream_of(handle);
  refuse_implicit(stream);
  if (bytes == 0) return nullptr;
  Device& device = Device::get(stream.device);
  Pool& from = pool ? *pool : device.pool ? *device.pool : device.default_pool();
  void* memory = allocate(bytes, MemoryKind::device, from.device);
  if (!memory) {
    // Memory freed in streams may not have been returned yet.
    if (!stream.capture) device_synchronize(lock, from.device);
    memory = allocate(bytes, MemoryKind::device, from.device);
  }
  require(memory != nullptr, cudaErrorMemoryAllocation);
  if (stream.capture) {
    AllocWork alloc;
    alloc.said.poolProps.allocType = cudaMemAllocationTypePinned;
    alloc.said.poolProps.location = {cudaMemLocationTypeDevice, from.device};
    alloc.said.bytesize = bytes;
    alloc.said.dptr = memory;
    stream.capture->graph->memory.push_back(graph_memory(memory));
    submit(lock, stream, make_work(alloc, stream.device));
    return memory;
  }
  from.used += bytes;
  from.used_high = std::max(from.used_high, from.used);
  from.reserved = std::max(from.reserved, from.used);
  from.reserved_high = std::max(from.reserved_high, from.reserved);
  books().from_pool[memory] = &from;
  const Op op = issue(lock, stream, Operation::Kind::marker, nullptr);
  if (stream_check::on()) stream_check::allocated(*op, memory, bytes);
  return memory;
}

void stream_free(void* memory, cudaStream_t handle) {
  Lock lock = lock_state();
  Stream& stream = stream_of(handle);
  refuse_implicit(stream);
  if (!memory) return;
  Allocation found;
  if (!find_begin(memory, found) || found.kind != MemoryKind::device) refuse_free(memory);
  if (stream.capture || is_of_graph(memory)) {
    submit(lock, stream, make_work(FreeWork{memory}, stream.device));
    return;
  }
  const size_t bytes = found.end - found.begin;
  Pool* pool = nullptr;
  if (const auto pooled = books().from_pool.find(memory); pooled != books().from_pool.end()) {
    pool = pooled->second;
    books().from_pool.erase(pooled);
  }
  const auto call = [memory, pool, bytes] {
    if (stream_check::touched()) {
      stream_check::freed(memory, bytes);
      stream_check::release_later([memory, pool, bytes] {
        release(memory, MemoryKind::device);
        give_back(pool, bytes);
      });
      return;
    }
    if (!release(memory, MemoryKind::device)) {
      throw Fault(FaultCode::illegal_address,
                  cat("cudaFreeAsync frees ", describe_address(reinterpret_cast<uintptr_t>(memory))));
    }
    const Lock inner = lock_state();
    give_back(pool, bytes);
  };
  submit(lock, stream, make_work(CallWork{call}, stream.device));
}

Pool* pool_of(cudaMemPool_t handle) {
  for (int i = 0; i < Device::count(); ++i)
    if (reinterpret_cast<Pool*>(handle) == &Device::get(i).default_pool()) return reinterpret_cast<Pool*>(handle);
  require(books().pools.contains(handle), cudaErrorInvalidResourceHandle);
  return reinterpret_cast<Pool*>(handle);
}

Pool* pool_create(int device) {
  auto* const pool = new Pool{Device::get(device).ordinal()};
  pool->is_default = false;
  const Lock lock = lock_state();
  books().pools.insert(pool);
  return pool;
}

void pool_destroy(Pool* pool) {
  Lock lock = lock_state();
  require(!pool->is_default);
  for (int i = 0; i < Device::count(); ++i)
    if (Device::get(i).pool == pool) Device::get(i).pool = &Device::get(i).default_pool();
  books().pools.erase(pool);
  // Its memory may still be freed later: the few bytes of the pool itself stay.
}

void pool_trim(Pool& pool, size_t bytes) {
  const Lock lock = lock_state();
  pool.reserved = std::max(pool.used, std::min<uint64_t>(pool.reserved, bytes));
}

void pool_set(Pool& pool, int attribute, void* value) {
  const Lock lock = lock_state();
  switch (attribute) {
    case cudaMemPoolReuseFollowEventDependencies:
      pool.reuse[0] = *static_cast<int*>(value);
      return;
    case cudaMemPoolReuseAllowOpportunistic:
      pool.reuse[1] = *static_cast<int*>(value);
      return;
    case cudaMemPoolReuseAllowInternalDependencies:
      pool.reuse[2] = *static_cast<int*>(value);
      return;
    case cudaMemPoolAttrReleaseThreshold:
      pool.release_threshold = *static_cast<uint64_t*>(value);
      return;
    case cudaMemPoolAttrReservedMemHigh:
      require(*static_cast<uint64_t*>(value) == 0);
      pool.reserved_high = pool.reserved;
      return;
    case cudaMemPoolAttrUsedMemHigh:
      require(*static_cast<uint64_t*>(value) == 0);
      pool.used_high = pool.used;
      return;
    default:
      fail(cudaErrorInvalidValue);
  }
}

void pool_get(Pool& pool, int attribute, void* value) {
  const Lock lock = lock_state();
  switch (attribute) {
    case cudaMemPoolReuseFollowEventDependencies:
      *static_cast<int*>(value) = pool.reuse[0];
      return;
    case cudaMemPoolReuseAllowOpportunistic:
      *static_cast<int*>(value) = pool.reuse[1];
      return;
    case cudaMemPoolReuseAllowInternalDependencies:
      *static_cast<int*>(value) = pool.reuse[2];
      return;
    case cudaMemPoolAttrReleaseThreshold:
      *static_cast<uint64_t*>(value) = pool.release_threshold;
      return;
    case cudaMemPoolAttrReservedMemCurrent:
      *static_cast<uint64_t*>(value) = pool.reserved;
      return;
    case cudaMemPoolAttrUsedMemCurrent:
      *static_cast<uint64_t*>(value) = pool.used;
      return;
    case cudaMemPoolAttrReservedMemHigh:
      *static_cast<uint64_t*>(value) = pool.reserved_high;
      return;
    case cudaMemPoolAttrUsedMemHigh:
      *static_cast<uint64_t*>(value) = pool.used_high;
      return;
    default:
      fail(cudaErrorInvalidValue);
  }
}

cudaPointerAttributes pointer_attributes(const void* pointer) {
  cudaPointerAttributes a{};
  Allocation found;
  a.device = -2;  // CUDA's answer for unknown memory
  a.type = cudaMemoryTypeUnregistered;
  a.hostPointer = const_cast<void*>(pointer);
  if (!find_allocation(reinterpret_cast<uintptr_t>(pointer), found)) return a;
  a.device = found.device;
  a.devicePointer = const_cast<void*>(pointer);
  switch (found.kind) {
    case MemoryKind::pinned:
      a.type = cudaMemoryTypeHost;
      break;
    case MemoryKind::managed:
      a.type = cudaMemoryTypeManaged;
      break;
    default:
      a.type = cudaMemoryTypeDevice;
      a.hostPointer = nullptr;
  }
  return a;
}

void device_reset(int ordinal) {
  {
    Lock lock = lock_state();
    Device& device = Device::get(ordinal);
    device_synchronize(lock, ordinal);
    device.active = false;
    device.flags = 0;
    device.peers.clear();
    device.revive();
    for (const Allocation& a : allocations_of(ordinal)) {
      if (a.kind != MemoryKind::device && a.kind != MemoryKind::managed && a.kind != MemoryKind::pinned) continue;
      void* const memory = reinterpret_cast<void*>(a.begin);
      if (is_of_graph(memory)) continue;  // The graph releases it.
      if (!release(memory, a.kind)) unregister_range(memory);
      books().host_flags.erase(memory);
      if (const auto pooled = books().from_pool.find(memory); pooled != books().from_pool.end()) {
        give_back(pooled->second, a.end - a.begin);
        books().from_pool.erase(pooled);
      }
    }
  }
  unload_all(ordinal);
}

}  // namespace emulator::cuda
