// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

// Memory as kernels see it: device memory, pinned and managed memory, and the variables of modules are ranges of this
// process's own addresses, each known to the registry, so that every access can be held against what it touches.

namespace emulator {

enum class MemoryKind : uint8_t { device, pinned, managed, module, parameters };

struct Allocation {
  uintptr_t begin = 0, end = 0;  ///< [begin, end): the bytes that were asked for
  MemoryKind kind{};
  int device = 0;                ///< whose memory; of pinned memory: the device current when it was made
  uint64_t number = 0;           ///< unique over the process: a reused address is another allocation

  bool holds(uintptr_t address, size_t bytes) const { return address >= begin && bytes <= end - begin && address <= end - bytes; }
};

/// A new range of zero or more bytes, 512-byte aligned, filled with 0xff (a NaN) unless it is host memory; its last byte
/// stands as close before an unreadable page as the alignment lets it. nullptr: the device's memory is used up.
void* allocate(size_t bytes, MemoryKind kind, int device);
/// False when no live allocation of this kind begins there. The addresses are unreadable from now on, and are not
/// given out again for a while: use after free is seen.
bool release(void* memory, MemoryKind kind);
/// Called when a range has ended, if anybody wants to know.
inline void (*memory_released)(uintptr_t begin, uintptr_t end) = nullptr;
/// Memory of the program's own that kernels may use (cudaHostRegister, kernel parameters).
void register_range(void* memory, size_t bytes, MemoryKind kind, int device);
bool unregister_range(void* memory);

void memory_info(int device, size_t& free_bytes, size_t& total_bytes);
/// False: nobody owns this address. Lock-free for readers that keep `found` and ask memory_generation().
bool find_allocation(uintptr_t address, Allocation& found);

/// Changes whenever an allocation begins or ends: what was found before may be stale.
inline std::atomic<uint64_t> memory_generation_count{1};
inline uint64_t memory_generation() { return memory_generation_count.load(std::memory_order_acquire); }

/// `8 bytes behind the end of a device allocation of 64 bytes`, `memory that was freed`, `a null pointer`, …
std::string describe_address(uintptr_t address);

}  // namespace emulator
