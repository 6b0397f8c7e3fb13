// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "emulator/machine/shared_file.h"

// Memory as kernels see it: device memory, pinned and managed memory, and the variables of modules are ranges of this
// process's own addresses, each known to the registry, so that every access can be checked.

namespace emulator {

enum class MemoryKind : uint8_t { device, pinned, managed, module, parameters, imported };

struct Allocation {
  uintptr_t begin = 0, end = 0;  ///< [begin, end): the bytes that were asked for
  MemoryKind kind{};
  bool read_only = false;        ///< for kernels: __constant__
  int device = 0;                ///< whose memory; of pinned memory: the device current when it was made
  uint64_t number = 0;           ///< unique over the process: a reused address is another allocation

  bool holds(uintptr_t address, size_t bytes) const { return address >= begin && bytes <= end - begin && address <= end - bytes; }
};

/// A new range of zero or more bytes, 512-byte aligned, filled with 0xff (a NaN) unless it is host memory; its last byte
/// is as close to an unreadable page as the alignment allows. nullptr: the device's memory is used up.
void* allocate(size_t bytes, MemoryKind kind, int device);
/// False when no live allocation of this kind begins there. The addresses are unreadable from now on, and are not
/// reused for a while: use after free is detected.
bool release(void* memory, MemoryKind kind);
/// Kernels must not write this range, from allocate() to release().
void make_read_only(void* memory);
/// Called when a range has ended, unless it is nullptr.
inline void (*memory_released)(uintptr_t begin, uintptr_t end) = nullptr;
/// Memory of the program's own that kernels may use (cudaHostRegister, kernel parameters).
void register_range(void* memory, size_t bytes, MemoryKind kind, int device);
bool unregister_range(void* memory);

/// The handle by which another process reaches a device allocation.
struct SharedMemory {
  SharedFile file;                 ///< its pages
  uint64_t offset = 0, bytes = 0;  ///< of the allocation in them
  int device = 0;
};
/// Makes the pages of the device allocation that holds this address those of a file, with what is in them. Nobody may use
/// them meanwhile. False: there is no such allocation, or the system has no more.
bool share(const void* memory, SharedMemory& shared);
/// The same memory at addresses of this process, of kind `imported`. nullptr: its owner has freed it or is gone.
void* import_shared(const SharedMemory& shared);

// Addresses without memory, for mapping it piece by piece (cuMemAddressReserve).

/// nullptr: there are no more. `bytes` and `alignment` are of whole pages.
void* reserve_addresses(size_t bytes, size_t alignment);
/// All of it is unreadable from now on, and is not reused for a while.
void free_addresses(void* begin, size_t bytes);
/// Registers [begin, begin + bytes) of reserved addresses as device memory; memory that lies right before or after it, of
/// this device and of reserved addresses, too, becomes one range with it.
void register_mapped(void* begin, size_t bytes, int device);
/// The opposite, for a part of such a range.
void unregister_mapped(void* begin, size_t bytes);

void memory_info(int device, size_t& free_bytes, size_t& total_bytes);
/// False: no allocation holds this address. Lock-free for readers that keep `found` and ask memory_generation().
bool find_allocation(uintptr_t address, Allocation& found);

/// Changes whenever an allocation begins or ends: what was found before may be stale.
inline std::atomic<uint64_t> memory_generation_count{1};
inline uint64_t memory_generation() { return memory_generation_count.load(std::memory_order_acquire); }

struct AddressDescription {
  std::string text;         ///< `8 bytes past the end of a device allocation of 64 bytes`, `a null pointer`, …
  bool is_invalid = false;  ///< null, past an end or freed; other addresses outside allocations may be host memory
};
AddressDescription look_up_address(uintptr_t address);
inline std::string describe_address(uintptr_t address) { return look_up_address(address).text; }

}  // namespace emulator
