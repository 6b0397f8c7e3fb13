// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "emulator/machine/shared_file.h"

// The memory of kernels: device memory, pinned and managed memory, and variables of modules are address ranges of this
// process. A registry holds all ranges, so that every access can be checked.

namespace emulator {

enum class MemoryKind : uint8_t { device, pinned, managed, module, parameters, imported };
/// `pinned host memory`, `a variable`, …
const char* kind_text(MemoryKind kind);

struct Allocation {
  uintptr_t begin = 0, end = 0;  ///< [begin, end): the requested bytes
  MemoryKind kind{};
  bool read_only = false;  ///< for kernels: __constant__
  int device = 0;          ///< owner; for pinned memory, the current device at allocation
  uint64_t number = 0;     ///< unique in the process: a reused address is another allocation

  bool holds(uintptr_t address, size_t bytes) const { return address >= begin && bytes <= end - begin && address <= end - bytes; }
};

/// Allocates zero or more bytes, 512-byte aligned, filled with 0xff (a NaN) except for host memory; the last byte is as
/// close to an unreadable page as the alignment allows. Returns nullptr if the device is out of memory.
void* allocate(size_t bytes, MemoryKind kind, int device);
/// Frees an allocation; returns false if no live allocation of this kind begins there. The addresses become unreadable
/// and are not reused for a while, so that use after free is detected.
bool release(void* memory, MemoryKind kind);
/// Kernels must not write this range, from allocate() to release().
void make_read_only(void* memory);
/// Hook called after a range was freed; may be nullptr.
inline void (*memory_released)(uintptr_t begin, uintptr_t end) = nullptr;
/// Registers the program's own memory for kernels (cudaHostRegister, kernel parameters).
void register_range(void* memory, size_t bytes, MemoryKind kind, int device);
bool unregister_range(void* memory);

/// The handle with which another process maps a device allocation.
struct SharedMemory {
  SharedFile file;                 ///< the pages
  uint64_t offset = 0, bytes = 0;  ///< position of the allocation in the pages
  int device = 0;
};
/// Moves the pages of the device allocation that contains this address into a file, with their contents. No thread may
/// use the pages meanwhile. Returns false if there is no such allocation, or the system has no files left.
bool share(const void* memory, SharedMemory& shared);
/// Maps shared memory into this process, with kind `imported`. Returns nullptr if the owner has freed the memory or has
/// ended.
void* import_shared(const SharedMemory& shared);

// Reserved addresses, to which memory is mapped piece by piece (cuMemAddressReserve).

/// Returns nullptr if no addresses are left. `bytes` and `alignment`: multiples of the page size.
void* reserve_addresses(size_t bytes, size_t alignment);
/// Frees reserved addresses: they become unreadable and are not reused for a while.
void free_addresses(void* begin, size_t bytes);
/// Registers [begin, begin + bytes) of reserved addresses as device memory; it is merged with adjacent mapped memory of
/// the same device.
void register_mapped(void* begin, size_t bytes, int device);
/// Unregisters a part of such a range.
void unregister_mapped(void* begin, size_t bytes);

void memory_info(int device, size_t& free_bytes, size_t& total_bytes);
/// A device's allocations and registered ranges.
std::vector<Allocation> allocations_of(int device);
/// Returns false if no allocation contains this address. Readers that keep `found` need no lock: they compare
/// memory_generation().
bool find_allocation(uintptr_t address, Allocation& found);

/// Changes whenever memory is allocated or freed: earlier results of find_allocation() may then be stale.
inline std::atomic<uint64_t> memory_generation_count{1};
inline uint64_t memory_generation() { return memory_generation_count.load(std::memory_order_acquire); }

struct AddressDescription {
  std::string text;         ///< `8 bytes past the end of a device allocation of 64 bytes`, `a null pointer`, …
  bool is_invalid = false;  ///< null, past an end or freed; other addresses outside allocations may be host memory
};
AddressDescription look_up_address(uintptr_t address);
inline std::string describe_address(uintptr_t address) { return look_up_address(address).text; }

}  // namespace emulator
