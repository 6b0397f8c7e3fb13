// SPDX-License-Identifier: Apache-2.0
#include "emulator/machine/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "emulator/machine/fault.h"
#include "emulator/machine/fresh.h"
#include "emulator/machine/options.h"

namespace emulator {

const char* kind_text(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::device:
      return "a device allocation";
    case MemoryKind::pinned:
      return "pinned host memory";
    case MemoryKind::managed:
      return "managed memory";
    case MemoryKind::module:
      return "a variable";
    case MemoryKind::parameters:
      return "kernel parameters";
    case MemoryKind::imported:
      return "memory of another process";
  }
  return "memory";
}

namespace {

constexpr size_t kAlignment = 512;
constexpr size_t kArena = size_t{8} << 40;       // addresses, not memory
constexpr size_t kQuarantine = size_t{1} << 38;  // freed addresses that stay unreadable
/// Larger allocations get their 0xff from pages that they share until they are written.
constexpr size_t kSharedFill = size_t{64} << 20;

size_t page_bytes() {
  static const size_t bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}
size_t round_up(size_t value, size_t to) { return (value + to - 1) / to * to; }

struct Freed {
  uintptr_t begin, end;   // as it was allocated
  uintptr_t page, bytes;  // the pages, with the guard after them
  MemoryKind kind;
};

class Registry {
 public:
  static Registry& get() {
    static Registry* const registry = new Registry;  // outlives every static object that frees memory
    return *registry;
  }

  void* allocate(size_t bytes, MemoryKind kind, int device) {
    const std::unique_lock lock(mutex_);
    const bool on_device = kind == MemoryKind::device || kind == MemoryKind::module;
    if (on_device && used(device) + bytes > budget()) return nullptr;
    const size_t page = page_bytes(), wanted = std::max<size_t>(bytes, 1);
    const size_t whole = round_up(round_up(wanted, kAlignment), page);
    const uintptr_t pages = take_addresses(whole + page);
    if (pages == 0 || !back(pages, whole, kind)) return nullptr;
    const uintptr_t begin = pages + whole - round_up(wanted, kAlignment);
    live_[begin] = {{begin, begin + bytes, kind, false, device, ++number_}, pages, whole + page};
    if (on_device) used(device) += bytes;
    changed();
    return reinterpret_cast<void*>(begin);
  }

  bool release(void* memory, MemoryKind kind) {
    const std::unique_lock lock(mutex_);
    const auto found = live_.find(reinterpret_cast<uintptr_t>(memory));
    if (found == live_.end() || found->second.owner.kind != kind || found->second.bytes == 0) return false;
    const Entry entry = found->second;
    live_.erase(found);
    if (kind == MemoryKind::device || kind == MemoryKind::module)
      used(entry.owner.device) -= entry.owner.end - entry.owner.begin;
    changed();
    if (entry.file >= 0) close(entry.file);
    // One mapping for pages and guard again, so that neighbours that were freed merge in the system's tables.
    mmap(reinterpret_cast<void*>(entry.pages), entry.bytes, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    quarantine_.push_back({entry.owner.begin, entry.owner.end, entry.pages, entry.bytes, kind});
    quarantined_ += entry.bytes;
    while (quarantined_ > kQuarantine) {
      const Freed& oldest = quarantine_.front();
      quarantined_ -= oldest.bytes;
      reusable_.emplace(oldest.bytes, oldest.page);
      quarantine_.pop_front();
    }
    return true;
  }

  void make_read_only(void* memory) {
    const std::unique_lock lock(mutex_);
    live_.at(reinterpret_cast<uintptr_t>(memory)).owner.read_only = true;
    changed();
  }

  void register_range(void* memory, size_t bytes, MemoryKind kind, int device) {
    const std::unique_lock lock(mutex_);
    const uintptr_t begin = reinterpret_cast<uintptr_t>(memory);
    live_[begin] = {{begin, begin + bytes, kind, false, device, ++number_}, 0, 0};
    changed();
  }
  bool unregister_range(void* memory) {
    const std::unique_lock lock(mutex_);
    const auto found = live_.find(reinterpret_cast<uintptr_t>(memory));
    if (found == live_.end() || found->second.bytes != 0) return false;
    live_.erase(found);
    changed();
    return true;
  }

  bool share(uintptr_t address, SharedMemory& shared) {
    const std::unique_lock lock(mutex_);
    auto next = live_.upper_bound(address);
    if (next == live_.begin()) return false;
    Entry& entry = std::prev(next)->second;
    if (address >= entry.owner.end || entry.owner.kind != MemoryKind::device || entry.bytes == 0) return false;
    const size_t whole = entry.bytes - page_bytes();
    if (entry.file < 0) {
      const SharedFile file = create_shared_file(whole);
      if (file.file < 0) return false;
      char* const copy = static_cast<char*>(map_file(file.file, whole));
      if (copy) std::memcpy(copy, reinterpret_cast<void*>(entry.pages), whole);
      if (!copy || !map_file(file.file, whole, reinterpret_cast<void*>(entry.pages))) return close(file.file), false;
      munmap(copy, whole);
      entry.file = file.file;
      entry.file_number = file.number;
    }
    shared = {{getpid(), entry.file, entry.file_number, whole},
              entry.owner.begin - entry.pages,
              entry.owner.end - entry.owner.begin,
              entry.owner.device};
    return true;
  }

  void* import_shared(const SharedMemory& shared) {
    const int file = open_shared_file(shared.file);
    if (file < 0) return nullptr;
    const std::unique_lock lock(mutex_);
    const size_t whole = shared.file.bytes;
    const uintptr_t pages = take_addresses(whole + page_bytes());
    const bool mapped = pages != 0 && map_file(file, whole, reinterpret_cast<void*>(pages));
    close(file);
    if (!mapped) return nullptr;
    const uintptr_t begin = pages + shared.offset;
    live_[begin] = {{begin, begin + shared.bytes, MemoryKind::imported, false, shared.device, ++number_},
                    pages,
                    whole + page_bytes()};
    changed();
    return reinterpret_cast<void*>(begin);
  }

  void* reserve(size_t bytes, size_t alignment) {
    const std::unique_lock lock(mutex_);
    const uintptr_t pages = take_addresses(bytes + alignment);
    return reinterpret_cast<void*>(round_up(pages, alignment));
  }

  void free_reserved(uintptr_t begin, size_t bytes) {
    const std::unique_lock lock(mutex_);
    forget(begin, begin + bytes);
    mmap(reinterpret_cast<void*>(begin), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
         0);
    quarantine_.push_back({begin, begin + bytes, begin, bytes, MemoryKind::device});
    quarantined_ += bytes;
  }

  void register_mapped(uintptr_t begin, uintptr_t end, int device) {
    const std::unique_lock lock(mutex_);
    forget(begin, end);
    const auto joins = [&](const Entry& e) { return e.mapped && e.owner.device == device; };
    if (const Entry* const before_it = before(begin); before_it && joins(*before_it) && before_it->owner.end == begin) {
      begin = before_it->owner.begin;
      live_.erase(begin);
    }
    if (const auto next = live_.find(end); next != live_.end() && joins(next->second)) {
      end = next->second.owner.end;
      live_.erase(next);
    }
    live_[begin] = {{begin, end, MemoryKind::device, false, device, ++number_}, 0, 0, -1, 0, true};
    changed();
  }

  void unregister_mapped(uintptr_t begin, uintptr_t end) {
    const std::unique_lock lock(mutex_);
    forget(begin, end);
  }

  bool find(uintptr_t address, Allocation& found) const {
    const std::shared_lock lock(mutex_);
    const Entry* const entry = before(address);
    if (!entry || address >= std::max(entry->owner.end, entry->owner.begin + 1)) return false;
    found = entry->owner;
    return true;
  }

  std::vector<Allocation> all_of(int device) const {
    const std::shared_lock lock(mutex_);
    std::vector<Allocation> all;
    for (const auto& [begin, entry] : live_)
      if (entry.owner.device == device && !entry.mapped) all.push_back(entry.owner);
    return all;
  }

  void info(int device, size_t& free_bytes, size_t& total_bytes) {
    const std::shared_lock lock(mutex_);
    total_bytes = budget();
    const size_t taken = used(device);
    free_bytes = total_bytes > taken ? total_bytes - taken : 0;
  }

  AddressDescription describe(uintptr_t address) const {
    const std::shared_lock lock(mutex_);
    if (address == 0) return {"a null pointer", true};
    if (address < 4096) return {cat("a null pointer and ", address, " bytes"), true};
    if (const Entry* const entry = before(address)) {
      const Allocation& a = entry->owner;
      if (address < a.end)
        return {cat("byte ", address - a.begin, " of ", kind_text(a.kind), " of ", a.end - a.begin, " bytes")};
      const uintptr_t reach = entry->bytes ? entry->pages + entry->bytes : a.end + 4096;
      if (address < reach)
        // Behind a registered range the program may have other memory of its own.
        return {cat(address - a.end, " bytes past the end of ", kind_text(a.kind), " of ", a.end - a.begin, " bytes"),
                entry->bytes != 0};
    }
    const auto next = live_.upper_bound(address);
    if (next != live_.end() && next->second.bytes && address >= next->second.pages)
      return {cat(next->first - address, " bytes before ", kind_text(next->second.owner.kind), " of ",
                  next->second.owner.end - next->second.owner.begin, " bytes")};
    for (auto freed = quarantine_.rbegin(); freed != quarantine_.rend(); ++freed)
      if (address >= freed->page && address < freed->page + freed->bytes)
        return {cat("byte ", static_cast<int64_t>(address - freed->begin), " of ", kind_text(freed->kind), " of ",
                    freed->end - freed->begin, " bytes that was freed"),
                true};
    std::ostringstream hex;
    hex << "0x" << std::hex << address;
    return {hex.str() + ", which is no memory that a kernel may use"};
  }

 private:
  struct Entry {
    Allocation owner;
    uintptr_t pages;
    size_t bytes;   // 0: registered, not ours
    int file = -1;  // that other processes may open
    uint64_t file_number = 0;
    bool mapped = false;  // piece by piece, at addresses that were reserved
  };

  static void changed() { memory_generation_count.fetch_add(1, std::memory_order_acq_rel); }

  /// The memory of one device: the GPU's memory, or its share of three quarters of this machine's.
  static size_t budget() {
    static const size_t bytes = [] {
      if (options().memory_mib > 0) return options().memory_mib << 20;
      const size_t machine = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * page_bytes() / 4 * 3;
      return std::min(options().gpu->memory_bytes, machine / static_cast<size_t>(std::max(1, options().gpus)));
    }();
    return bytes;
  }
  size_t& used(int device) { return used_[static_cast<size_t>(device) % used_.size()]; }

  const Entry* before(uintptr_t address) const {
    auto next = live_.upper_bound(address);
    return next == live_.begin() ? nullptr : &std::prev(next)->second;
  }

  /// Forgets the mapped pieces of [begin, end); memory around them stays.
  void forget(uintptr_t begin, uintptr_t end) {
    std::vector<uintptr_t> ranges;
    auto next = live_.lower_bound(begin);
    if (next != live_.begin() && std::prev(next)->second.owner.end > begin) ranges.push_back(std::prev(next)->first);
    for (; next != live_.end() && next->first < end; ++next) ranges.push_back(next->first);
    for (const uintptr_t range : ranges) cut(range, begin, end);
    changed();
  }
  void cut(uintptr_t at, uintptr_t begin, uintptr_t end) {
    const Entry whole = live_.at(at);
    live_.erase(at);
    for (const auto& [from, to] : {std::pair{at, begin}, std::pair{end, whole.owner.end}}) {
      if (from >= to) continue;
      Entry part = whole;
      part.owner.begin = from;
      part.owner.end = to;
      live_[from] = part;
    }
  }

  uintptr_t take_addresses(size_t bytes) {
    if (arena_ == 0) {
      void* const reserved = mmap(nullptr, kArena, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (reserved == MAP_FAILED) return 0;
      arena_ = next_ = reinterpret_cast<uintptr_t>(reserved);
    }
    const auto reused = reusable_.lower_bound(bytes);
    if (reused != reusable_.end()) {
      const auto [size, pages] = *reused;
      reusable_.erase(reused);
      if (size > bytes) reusable_.emplace(size - bytes, pages + bytes);
      return pages;
    }
    if (next_ + bytes > arena_ + kArena) return 0;
    return std::exchange(next_, next_ + bytes);
  }

  /// Real memory for [pages, pages + bytes).
  bool back(uintptr_t pages, size_t bytes, MemoryKind kind) {
    const bool poison = kind == MemoryKind::device;
    if (poison && bytes > kSharedFill && shared_fill() >= 0) {
      for (size_t at = 0; at < bytes; at += kSharedFill)
        if (mmap(reinterpret_cast<void*>(pages + at), std::min(kSharedFill, bytes - at), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, shared_fill(), 0) == MAP_FAILED)
          return false;
      return true;
    }
    if (mprotect(reinterpret_cast<void*>(pages), bytes, PROT_READ | PROT_WRITE) != 0) return false;
    if (poison) std::memset(reinterpret_cast<void*>(pages), 0xff, bytes);
    return true;
  }

  static int shared_fill() {
    static const int file = [] {
      const int fd = memfd_create("weft-emulate-fill", MFD_CLOEXEC);
      if (fd < 0 || ftruncate(fd, static_cast<off_t>(kSharedFill)) != 0) return -1;
      void* const pages = mmap(nullptr, kSharedFill, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
      if (pages == MAP_FAILED) return -1;
      std::memset(pages, 0xff, kSharedFill);
      munmap(pages, kSharedFill);
      return fd;
    }();
    return file;
  }

  mutable std::shared_mutex mutex_;
  std::map<uintptr_t, Entry> live_;
  std::deque<Freed> quarantine_;
  size_t quarantined_ = 0;
  std::multimap<size_t, uintptr_t> reusable_;
  std::array<size_t, 64> used_{};
  uintptr_t arena_ = 0, next_ = 0;
  uint64_t number_ = 0;
};

}  // namespace

void* allocate(size_t bytes, MemoryKind kind, int device) {
  void* const memory = Registry::get().allocate(bytes, kind, device);
  // The host can write the others without a call.
  if (memory && kind == MemoryKind::device) mark_fresh(memory, bytes);
  if (memory && kind != MemoryKind::device) mark_written(memory, bytes);
  return memory;
}
bool release(void* memory, MemoryKind kind) {
  Allocation ending;
  const bool tell = memory_released && find_allocation(reinterpret_cast<uintptr_t>(memory), ending);
  if (!Registry::get().release(memory, kind)) return false;
  if (tell) memory_released(ending.begin, ending.end);
  return true;
}
std::vector<Allocation> allocations_of(int device) { return Registry::get().all_of(device); }
bool share(const void* memory, SharedMemory& shared) {
  return Registry::get().share(reinterpret_cast<uintptr_t>(memory), shared);
}
void* import_shared(const SharedMemory& shared) {
  void* const memory = Registry::get().import_shared(shared);
  if (memory) mark_written(memory, shared.bytes);  // other processes write without a report
  return memory;
}
void* reserve_addresses(size_t bytes, size_t alignment) { return Registry::get().reserve(bytes, alignment); }
void free_addresses(void* begin, size_t bytes) {
  Registry::get().free_reserved(reinterpret_cast<uintptr_t>(begin), bytes);
}
void register_mapped(void* begin, size_t bytes, int device) {
  const auto at = reinterpret_cast<uintptr_t>(begin);
  Registry::get().register_mapped(at, at + bytes, device);
}
void unregister_mapped(void* begin, size_t bytes) {
  const auto at = reinterpret_cast<uintptr_t>(begin);
  if (memory_released) memory_released(at, at + bytes);
  Registry::get().unregister_mapped(at, at + bytes);
}
void make_read_only(void* memory) { Registry::get().make_read_only(memory); }
void register_range(void* memory, size_t bytes, MemoryKind kind, int device) {
  Registry::get().register_range(memory, bytes, kind, device);
}
bool unregister_range(void* memory) {
  Allocation ending;
  const bool tell = memory_released && find_allocation(reinterpret_cast<uintptr_t>(memory), ending);
  if (!Registry::get().unregister_range(memory)) return false;
  if (tell && ending.kind != MemoryKind::parameters) memory_released(ending.begin, ending.end);
  return true;
}
void memory_info(int device, size_t& free_bytes, size_t& total_bytes) {
  Registry::get().info(device, free_bytes, total_bytes);
}
bool find_allocation(uintptr_t address, Allocation& found) { return Registry::get().find(address, found); }
AddressDescription look_up_address(uintptr_t address) { return Registry::get().describe(address); }

}  // namespace emulator
