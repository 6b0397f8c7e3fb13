// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "emulator/machine/block_races.h"
#include "emulator/source/memory.h"
#include "emulator/source/site.h"
#include "emulator/source/static_shared.h"
#include "emulator/source/worker.h"

namespace emulator::source {

/// 1 for each byte of the device range that was written since it was allocated.
uint8_t* device_written();

enum class Access : uint8_t { read, write, atomic };

/// Checks the block that one OS thread runs. What both front ends have the same is machine/block_races.h.
class Checker final : public BlockRaces {
 public:
  explicit Checker(Worker& worker);

  void begin(LaunchClock& launch);
  void end(std::string& error);
  void barrier();
  Worker& worker() { return worker_; }
  Actor actor(const char* what, Site at) const { return {worker_.current(), at, what}; }

  template <Access kAccess, size_t kBytes>
  void access(uintptr_t address, size_t bytes, Site at);
  /// An atomic is about to run.
  void atomic(uintptr_t address, size_t bytes, Site at);
  void copy_issued(const Copy& copy);
  void copy_done(const Copy& copy);
  /// TMA or wgmma is about to read this block's shared memory.
  void proxy_reads(const Actor& by, const Run& run);
  void global_write(const Actor& by, const Run& run);

 private:
  struct Cached {
    uintptr_t page, begin, end;
  };
  static constexpr size_t kCached = 256;
  /// The running thread's, for as long as nothing changes for it.
  template <bool kShared>
  struct Looking {
    Visitor<kShared> visitor;
    uint64_t changes = 0;
    int thread = -1;
    bool has_written = false;
  };

  template <bool kShared>
  Looking<kShared>& looking();
  template <Access kAccess, size_t kBytes>
  void device_access(uintptr_t address, size_t bytes, Site at);
  template <Access kAccess, size_t kBytes>
  void shared_access(uintptr_t address, size_t bytes, Site at);
  template <bool kShared, Access kAccess, size_t kBytes>
  bool visit(Visitor<kShared>& visitor, uintptr_t address, size_t bytes);
  template <Access kAccess, size_t kBytes>
  void check_bounds(uintptr_t address, size_t bytes, Site at);
  bool is_peer_memory(uintptr_t address) const;
  bool stays_in_variable(uint16_t& variable, size_t offset, size_t bytes, Site at);
  bool is_program_memory(uintptr_t address, Access access) const;

  BlockRaces& peer(uint32_t rank) override;
  void report(const Actor& by, const Conflict& conflict, bool shared, uintptr_t address, uint64_t bytes) override;
  void report_unfenced(const Actor& by, bool overwrites, const Conflict& access, uintptr_t address) override;
  void never_written(const Actor& by, uintptr_t address, size_t bytes);
  [[noreturn]] void out_of_bounds(Access access, uintptr_t address, size_t bytes, Site at, uint16_t variable = 0);
  std::string who_text(uint64_t stamp) const;
  std::string describe(uintptr_t address) const;
  std::string unwritten_text() const;

  Worker& worker_;
  Shadow& shadow_;
  uintptr_t stacks_begin_, stacks_bytes_, device_begin_, device_bytes_, static_begin_, static_bytes_;
  uint8_t* const device_written_;
  Looking<true> shared_;
  Looking<false> global_;
  std::vector<uint16_t> variable_of_byte_;  // of the thread-local storage; 0: none
  /// The variable that the code at an address touched first in this launch.
  struct FirstTouch {
    Site at;
    uint32_t launch;
    uint16_t variable;
  };
  static constexpr size_t kTouches = 1024;
  FirstTouch touches_[kTouches] = {};
  uint32_t launch_ = 0;  ///< its first block's number
  uint64_t memory_generation_ = 0;
  Cached cached_[kCached];
  /// The first read of unwritten bytes. It waits for the end of the barrier's interval: if another thread
  /// writes them there, the report is that of a race, with both lines.
  struct {
    int thread;
    Site at;
    uintptr_t address;
    size_t bytes;
  } unwritten_{};
  bool found_unwritten_ = false;
};

constexpr const char* verb(Access access) {
  return access == Access::read ? "read" : access == Access::write ? "write" : "atomic access";
}

template <bool kShared>
inline Checker::Looking<kShared>& Checker::looking() {
  Looking<kShared>* own;
  if constexpr (kShared)
    own = &shared_;
  else
    own = &global_;
  const int thread = worker_.current();
  if (own->thread == thread && own->changes == clock_.changes()) [[likely]]
    return *own;
  Visitor<kShared>& visitor = own->visitor;
  if (own->changes != clock_.changes() || (own->thread ^ thread) >= kLanes) {
    visitor.glance = clock_.glance<kShared>(static_cast<uint32_t>(thread / kLanes));
    visitor.first_thread = thread / kLanes * kLanes;
  }
  visitor.now = visitor.mark = stamp_of(thread);
  visitor.lanes = 1u << thread % kLanes;
  own->changes = clock_.changes();
  own->thread = thread;
  own->has_written = false;
  return *own;
}

/// False: some bytes of shared memory are read that no block of the cluster has written.
template <bool kShared, Access kAccess, size_t kBytes>
bool Checker::visit(Visitor<kShared>& visitor, uintptr_t address, size_t bytes) {
  if (kBytes) bytes = kBytes;
  bool is_written = true;
  for (const uintptr_t end = address + bytes; address < end;) {
    const size_t here = std::min<uintptr_t>(end, (address | (ShadowPage::kBytes - 1)) + 1) - address;
    ShadowPage& page = shadow_.page(address, here);
    const size_t step = size_t{1} << page.cell_shift;
    size_t cell = page.cell(address);
    if (kAccess == Access::read && here == step * ShadowPage::Cells::kCount && cell % ShadowPage::Cells::kCount == 0) {
      const Cell first(page, cell);
      if (kShared)
        for (const uint64_t written : first.four.write) is_written = is_written && !visitor.glance.dead(written);
      if (visitor.read_four(first, address)) {
        address += here;
        continue;
      }
    }
    for (const uintptr_t stop = address + here; address < stop; address += step, ++cell) {
      const Cell one(page, cell);
      if (kShared && kAccess != Access::write) is_written = is_written && !visitor.glance.dead(one.write());
      const bool good = kAccess == Access::read ? visitor.read(one, address) : visitor.write(one, address);
      if (!good) [[unlikely]]
        report(actor(verb(kAccess), visitor.at), visitor.conflict, kShared, address, bytes);
    }
  }
  return is_written;
}

template <Access kAccess, size_t kBytes>
void Checker::check_bounds(uintptr_t address, size_t bytes, Site at) {
  if (kBytes) bytes = kBytes;
  const uintptr_t page = address >> 12;
  Cached& entry = cached_[page % kCached];
  if (entry.page != page) [[unlikely]] {
    Allocation owner;
    if (!find_allocation(address, owner)) out_of_bounds(kAccess, address, bytes, at);
    const uintptr_t begin = reinterpret_cast<uintptr_t>(owner.data);
    entry = {page, begin, begin + owner.bytes};
  }
  if (address < entry.begin || address + bytes > entry.end) [[unlikely]]
    out_of_bounds(kAccess, address, bytes, at);
  uint8_t* const written = device_written_ + (address - device_begin_);
  if (kAccess != Access::write) {
    const auto any_unwritten = [&] {
      if constexpr (kBytes != 0) {  // written[] holds 0 and 1
        uint8_t ones[kBytes];
        std::memset(ones, 1, kBytes);
        return std::memcmp(written, ones, kBytes) != 0;
      } else {
        return std::find(written, written + bytes, 0) != written + bytes;
      }
    };
    if (any_unwritten()) [[unlikely]]
      never_written(actor(verb(kAccess), at), address, bytes);
  }
  if (kAccess != Access::read) std::memset(written, 1, kBytes ? kBytes : bytes);
}

template <Access kAccess, size_t kBytes>
void Checker::device_access(uintptr_t address, size_t bytes, Site at) {
  check_bounds<kAccess, kBytes>(address, bytes, at);
  Looking<false>& own = looking<false>();
  if (kAccess == Access::write && !own.has_written) {
    own.has_written = true;
    clock_.global_writes(own.thread / kLanes, own.visitor.lanes);
  }
  own.visitor.at = at;
  own.visitor.mark = own.visitor.now | (kAccess == Access::atomic ? stamp::kStrong : 0);
  visit<false, kAccess, kBytes>(own.visitor, address, bytes);
}

template <Access kAccess, size_t kBytes>
void Checker::shared_access(uintptr_t address, size_t bytes, Site at) {
  Visitor<true>& visitor = looking<true>().visitor;
  visitor.at = at;
  visitor.mark = visitor.now | (kAccess == Access::atomic ? stamp::kStrong : 0);
  if (!visit<true, kAccess, kBytes>(visitor, address, bytes)) [[unlikely]]
    never_written(actor(verb(kAccess), at), address, bytes);
}

template <Access kAccess, size_t kBytes>
inline void Checker::access(uintptr_t address, size_t bytes, Site at) {
  if (address - stacks_begin_ < stacks_bytes_ || worker_.reporting()) return;
  if (kBytes) bytes = kBytes;
  if (address - device_begin_ < device_bytes_) {
    device_access<kAccess, kBytes>(address, bytes, at);
  } else if (worker_.in_dynamic_shared_arena(address)) {
    const uintptr_t begin = reinterpret_cast<uintptr_t>(worker_.dynamic_shared());
    if (address < begin || address + bytes > begin + worker_.dynamic_shared_bytes()) [[unlikely]]
      out_of_bounds(kAccess, address, bytes, at);
    shared_access<kAccess, kBytes>(address, bytes, at);
  } else if (address - static_begin_ < static_bytes_) {
    const size_t offset = address - static_begin_;
    uint16_t variable = variable_of_byte_[offset];
    if (!stays_in_variable(variable, offset, bytes, at)) [[unlikely]]
      out_of_bounds(kAccess, address, bytes, at, variable);
    if (!variable) return;  // threadIdx, or a variable that is not __shared__
    shared_access<kAccess, kBytes>(address, bytes, at);
  } else if (is_peer_memory(address)) {
    shared_access<kAccess, kBytes>(address, bytes, at);
  } else if (!is_program_memory(address, kAccess)) {
    out_of_bounds(kAccess, address, bytes, at);
  } else {
    return;
  }
  worker_.yield_sometimes();
}

}  // namespace emulator::source
