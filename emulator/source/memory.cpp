// SPDX-License-Identifier: Apache-2.0
#include "emulator/source/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>

#include "emulator/machine/fault.h"
#include "emulator/source/check.h"
#include "emulator/source/pages.h"
#include "emulator/source/report.h"

namespace emulator::source {

namespace {

constexpr size_t kAlignment = 256;
constexpr size_t kRange = size_t{256} << 30;
/// More freed memory than this goes back to the system.
constexpr size_t kKeep = size_t{1} << 30;

size_t round_up(size_t value, size_t to) { return (value + to - 1) / to * to; }

size_t total_memory() {
  if (const char* text = std::getenv("WEFT_SIMT_MEMORY_MB")) return std::strtoull(text, nullptr, 10) << 20;
  return static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE)) / 4 * 3;
}

/// Best fit over one range of pages; free neighbours are joined.
class Arena {
 public:
  Arena() {
    void* memory = mmap(nullptr, kRange, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
      throw Fault(FaultCode::launch_failure,
                  cat("simt: cannot reserve ", kRange >> 30, " GiB of addresses for device memory. Is ulimit -v set?"));
    base_ = static_cast<char*>(memory);
    insert_free(0, kRange);
  }

  void* allocate(size_t bytes, bool pinned) {
    std::lock_guard lock(mutex_);
    const size_t rounded = round_up(bytes, kAlignment);
    if (!pinned && used_ + rounded > total_) return nullptr;
    const size_t usable = round_up(rounded, page_bytes());
    const size_t wanted = usable + page_bytes();  // the guard
    const auto fit = free_by_size_.lower_bound({wanted, 0});
    if (fit == free_by_size_.end()) return nullptr;
    const auto [size, offset] = *fit;
    erase_free(offset, size);
    if (size > wanted) insert_free(offset + wanted, size - wanted);
    if (mprotect(base_ + offset, usable, PROT_READ | PROT_WRITE) != 0) {
      insert_free(offset, wanted);
      return nullptr;
    }
    char* data = base_ + offset + usable - rounded;
    live_[offset] = {{data, bytes, pinned}, wanted};
    if (!pinned) used_ += rounded;
    ++generation_;
    return data;
  }

  bool release(void* memory, bool pinned) {
    std::lock_guard lock(mutex_);
    const auto owner = owner_of(reinterpret_cast<uintptr_t>(memory));
    if (owner == live_.end() || owner->second.allocation.data != memory || owner->second.allocation.pinned != pinned)
      return false;
    size_t offset = owner->first, size = owner->second.size;
    if (!pinned) used_ -= round_up(owner->second.allocation.bytes, kAlignment);
    live_.erase(owner);
    ++generation_;
    mprotect(base_ + offset, size, PROT_NONE);
    kept_ += size;
    if (kept_ > kKeep) {
      for (const auto& [begin, length] : free_)
        if (length <= kKeep * 16) madvise(base_ + begin, length, MADV_DONTNEED);
      madvise(base_ + offset, size, MADV_DONTNEED);
      kept_ = 0;
    }
    auto next = free_.lower_bound(offset);
    if (next != free_.end() && next->first == offset + size) {
      size += next->second;
      erase_free(next->first, next->second);
    }
    next = free_.lower_bound(offset);
    if (next != free_.begin()) {
      const auto [begin, length] = *std::prev(next);
      if (begin + length == offset) {
        erase_free(begin, length);
        offset = begin;
        size += length;
      }
    }
    insert_free(offset, size);
    return true;
  }

  bool find(uintptr_t address, Allocation& found) {
    std::lock_guard lock(mutex_);
    const auto owner = owner_of(address);
    if (owner == live_.end()) return false;
    found = owner->second.allocation;
    return true;
  }

  void info(size_t& free_bytes, size_t& total_bytes) {
    std::lock_guard lock(mutex_);
    total_bytes = total_;
    free_bytes = total_ - used_;
  }

  uint64_t generation() const { return generation_.load(std::memory_order_relaxed); }
  uintptr_t base() const { return reinterpret_cast<uintptr_t>(base_); }

 private:
  struct Region {
    Allocation allocation;
    size_t size;
  };

  std::map<size_t, Region>::iterator owner_of(uintptr_t address) {
    if (address - base() >= kRange) return live_.end();
    const size_t offset = address - base();
    auto next = live_.upper_bound(offset);
    if (next == live_.begin()) return live_.end();
    --next;
    return offset < next->first + next->second.size ? next : live_.end();
  }
  void insert_free(size_t offset, size_t size) {
    free_[offset] = size;
    free_by_size_.insert({size, offset});
  }
  void erase_free(size_t offset, size_t size) {
    free_.erase(offset);
    free_by_size_.erase({size, offset});
  }

  std::mutex mutex_;
  char* base_;
  size_t total_ = total_memory();
  size_t used_ = 0;
  size_t kept_ = 0;
  std::atomic<uint64_t> generation_{1};
  std::map<size_t, Region> live_;
  std::map<size_t, size_t> free_;
  std::set<std::pair<size_t, size_t>> free_by_size_;
};

Arena& arena() {
  static Arena& arena = *new Arena;  // outlives every static object that frees device memory
  return arena;
}

}  // namespace

void* allocate(size_t bytes, bool pinned) {
  void* data = arena().allocate(bytes, pinned);
  if (!data) return nullptr;
  if (!pinned) std::memset(data, 0xff, bytes);
  check_allocated(data, bytes, pinned);
  return data;
}

bool release(void* memory, bool pinned) { return arena().release(memory, pinned); }
void memory_info(size_t& free_bytes, size_t& total_bytes) { arena().info(free_bytes, total_bytes); }
bool find_allocation(uintptr_t address, Allocation& found) { return arena().find(address, found); }
uint64_t memory_generation() { return arena().generation(); }
bool in_device_range(uintptr_t address) { return address - arena().base() < kRange; }
size_t device_offset(uintptr_t address) { return address - arena().base(); }
size_t device_range_bytes() { return kRange; }
uintptr_t device_range_begin() { return arena().base(); }

bool valid_range(const void* address, size_t bytes) {
  const uintptr_t begin = reinterpret_cast<uintptr_t>(address);
  if (bytes == 0 || (!in_device_range(begin) && !in_device_range(begin + bytes - 1))) return true;
  Allocation owner;
  if (!find_allocation(begin, owner)) return false;
  const uintptr_t data = reinterpret_cast<uintptr_t>(owner.data);
  return begin >= data && begin + bytes <= data + owner.bytes;
}

std::string describe_address(uintptr_t address) {
  if (address < 65536) return cat("address ", hex(address), ", from a null pointer");
  if (!in_device_range(address)) return cat("address ", hex(address), " is not device memory");
  Allocation owner;
  if (!find_allocation(address, owner))
    return cat("address ", hex(address), " is device memory that is not allocated (freed?)");
  const uintptr_t data = reinterpret_cast<uintptr_t>(owner.data);
  const std::string what =
      cat(owner.pinned ? "a pinned allocation of " : "a device allocation of ", owner.bytes, " bytes");
  if (address < data) return cat(data - address, " bytes before the beginning of ", what);
  if (address >= data + owner.bytes) return cat(address - data - owner.bytes, " bytes past the end of ", what);
  return cat("offset ", address - data, " in ", what);
}

}  // namespace emulator::source
