// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace emulator::source {

/// Device memory (and pinned host memory) lives in one reserved range of addresses, so that any address can be told to
/// be device memory or not. Each allocation ends, as exactly as 256-byte alignment allows, at an unreadable page; freed
/// memory is unreadable. New memory is filled with 0xff, which is a NaN.
struct Allocation {
  char* data;
  size_t bytes;  // what was asked for
  bool pinned;
};

/// nullptr when the device memory is used up (WEFT_SIMT_MEMORY_MB, or three quarters of the machine's).
void* allocate(size_t bytes, bool pinned);
/// False when `memory` is not the beginning of a live allocation.
bool release(void* memory, bool pinned);
void memory_info(size_t& free_bytes, size_t& total_bytes);

/// Finds the live allocation that owns the page of `address`. Safe from several threads.
bool find_allocation(uintptr_t address, Allocation& found);
/// Changes whenever an allocation begins or ends.
uint64_t memory_generation();
/// False for addresses that device allocations could not have.
bool in_device_range(uintptr_t address);
/// Offset into the device range, for shadow memory.
size_t device_offset(uintptr_t address);
size_t device_range_bytes();
uintptr_t device_range_begin();

/// False where [address, address + bytes) begins or ends in the device range, but not inside one live allocation.
bool valid_range(const void* address, size_t bytes);

/// `8 bytes past the end of a device allocation of 64 bytes`, `memory that was freed`, `a null pointer`, …
std::string describe_address(uintptr_t address);

}  // namespace emulator::source
