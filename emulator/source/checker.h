// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "emulator/source/memory.h"
#include "emulator/source/race.h"
#include "emulator/source/static_shared.h"
#include "emulator/source/worker.h"

namespace emulator::source {

/// 1 for each byte of the device range that was written since it was allocated.
uint8_t* device_written();

/// One access: its thread, address and source line.
struct Event {
  uintptr_t address;
  size_t bytes;
  Access access;
  Site at;
  int thread;
};

/// Checks the block that one OS thread runs.
class Checker {
 public:
  explicit Checker(Worker& worker);

  void begin(LaunchClock& launch, uint64_t block);
  void end(std::string& error);
  void barrier();
  BlockClock& clock() { return clock_; }
  Worker& worker() { return worker_; }

  template <Access kAccess, size_t kBytes>
  void access(uintptr_t address, size_t bytes, Site at);
  uint32_t copy_issued(uintptr_t destination, size_t bytes, uintptr_t source, size_t source_bytes, Site at);
  void copy_done(uintptr_t destination, size_t bytes, uintptr_t source, size_t source_bytes, Site at, uint32_t issued);

  // Hopper (checker_hopper.cpp).
  /// Views are kept from the first instruction on that needs them.
  Views& views();
  Handover& mbarrier(int number, bool made = false);
  Handover& named(int id);
  /// Of the whole cluster: kept by its block 0.
  Handover& cluster();
  /// As access(), to the shared memory of a block of the cluster, by the running thread.
  template <Access kAccess>
  void access_in(Checker& owner, uintptr_t address, size_t bytes, Site at);
  /// [address, address + bytes) of this block's shared memory is written by `proxy` at this moment, or from now on.
  void written_by(int proxy, uintptr_t address, size_t bytes, Site at, bool in_flight);
  /// TMA or wgmma reads this block's shared memory: threads' writes there must be fenced.
  void read_by(int proxy, uintptr_t address, size_t bytes, Site at);
  void global_write_by(int thread, uintptr_t address, size_t bytes, Site at);

 private:
  struct Cached {
    uintptr_t page, begin, end;
  };
  static constexpr size_t kCached = 256;

  template <Access kAccess, size_t kBytes>
  void device_access(uintptr_t address, size_t bytes, Site at);
  template <Access kAccess>
  void shared_access(Shadow& shadow, size_t offset, uintptr_t address, size_t bytes, Site at);
  template <bool kShared, Access kAccess>
  void visit(Shadow& shadow, size_t offset, uintptr_t address, size_t bytes, Site at, bool& unwritten) {
    visit_as<kShared, kAccess>(worker_.current(), shadow, offset, address, bytes, at, unwritten);
  }
  template <bool kShared, Access kAccess>
  void visit_as(int thread, Shadow& shadow, size_t offset, uintptr_t address, size_t bytes, Site at, bool& unwritten);
  /// The checker of the block of the cluster whose shared memory has this address, or nullptr.
  Checker* peer_with(uintptr_t address);
  [[noreturn]] void not_fenced(const Event& e, const Cell& cell);
  std::string who(const Conflict& conflict, int distance) const;
  template <bool kShared>
  bool is_split(const Cell& word) const {
    if (kShared) return clock_.is_live(word.split);
    return word.split - clock_.launch().first_block() < clock_.launch().blocks();
  }
  bool stays_in_variable(uint16_t& variable, size_t offset, size_t bytes, Site at);
  bool is_program_memory(uintptr_t address, Access access) const;
  Shadow* shared_shadow(uintptr_t address, size_t& offset);

  void never_written(const Event& e);
  [[noreturn]] void out_of_bounds(const Event& e, uint16_t variable = 0);
  [[noreturn]] void race(const Event& e, const Conflict& conflict);
  std::string describe(uintptr_t address) const;
  std::string unwritten_text() const;

  Worker& worker_;
  BlockClock clock_;
  uint32_t numbers_generation_ = 0;
  uintptr_t stacks_begin_, stacks_bytes_, device_begin_, device_bytes_, dynamic_begin_, static_begin_, static_bytes_;
  uint8_t* const device_written_;
  Shadow& device_shadow_;
  Shadow dynamic_shadow_, static_shadow_;
  std::vector<uint16_t> variable_of_byte_;  // of the thread-local storage; 0: none
  /// The variable that the code at an address touched first in this launch.
  struct FirstTouch {
    Site at;
    uint32_t launch;
    uint16_t variable;
  };
  static constexpr size_t kTouches = 1024;
  FirstTouch touches_[kTouches] = {};
  uint64_t memory_generation_ = 0;
  Cached cached_[kCached];
  /// The first read of unwritten bytes. It waits for the end of the barrier's interval: if another thread
  /// writes them there, the report is that of a race, with both lines.
  Event unwritten_{};
  bool found_unwritten_ = false;
  bool views_used_ = false;
  Views views_;
  std::vector<Handover> mbarriers_;
  std::array<Handover, 16> named_;
  Handover cluster_;
};

template <bool kShared, Access kAccess>
void Checker::visit_as(int thread, Shadow& shadow, size_t offset, uintptr_t address, size_t bytes, Site at,
                       bool& unwritten) {
  Visitor<kShared> visitor{clock_, thread, clock_.now(thread), at};
  const auto visit_cell = [&](Cell& cell) {
    if (kShared && kAccess != Access::write && !clock_.is_live(stamp::block(cell.write))) unwritten = true;
    if (!visitor.visit(kAccess, cell, address)) [[unlikely]]
      race({address, bytes, kAccess, at, thread}, visitor.conflict);
  };
  for (const size_t end = offset + bytes; offset < end;) {
    Cell& word = shadow.word(offset);
    const bool split = is_split<kShared>(word);
    if (offset % 4 == 0 && end - offset >= 4) {
      if (!split) [[likely]] {
        visit_cell(word);
        offset += 4;
        address += 4;
        continue;
      }
      for (int i = 0; i < 4; ++i, ++offset, ++address) visit_cell(shadow.byte(offset));
      if (kAccess == Access::write) word = {visitor.now, {}, at, {}, 0};
    } else {
      if (!split) {
        std::fill_n(&shadow.byte(offset & ~size_t{3}), 4, word);
        word.split = clock_.block();
      }
      visit_cell(shadow.byte(offset));
      ++offset;
      ++address;
    }
  }
}

template <Access kAccess, size_t kBytes>
void Checker::device_access(uintptr_t address, size_t bytes, Site at) {
  const uintptr_t page = address >> 12;
  Cached& entry = cached_[page % kCached];
  if (entry.page != page) [[unlikely]] {
    Allocation owner;
    if (!find_allocation(address, owner)) out_of_bounds({address, bytes, kAccess, at, worker_.current()});
    const uintptr_t begin = reinterpret_cast<uintptr_t>(owner.data);
    entry = {page, begin, begin + owner.bytes};
  }
  if (address < entry.begin || address + bytes > entry.end) [[unlikely]]
    out_of_bounds({address, bytes, kAccess, at, worker_.current()});
  const size_t offset = address - device_begin_;
  uint8_t* const written = device_written_ + offset;
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
      never_written({address, bytes, kAccess, at, worker_.current()});
  }
  if (kAccess != Access::read) std::memset(written, 1, kBytes ? kBytes : bytes);
  if (kAccess == Access::write) clock_.global_write(clock_.now(worker_.current()));
  bool unused = false;
  visit<false, kAccess>(device_shadow_, offset, address, kBytes ? kBytes : bytes, at, unused);
}

template <Access kAccess>
void Checker::shared_access(Shadow& shadow, size_t offset, uintptr_t address, size_t bytes, Site at) {
  bool unwritten = false;
  visit<true, kAccess>(shadow, offset, address, bytes, at, unwritten);
  if (unwritten) [[unlikely]]
    never_written({address, bytes, kAccess, at, worker_.current()});
}

template <Access kAccess>
void Checker::access_in(Checker& owner, uintptr_t address, size_t bytes, Site at) {
  size_t offset;
  Shadow* const shadow = owner.shared_shadow(address, offset);
  shared_access<kAccess>(*shadow, offset, address, bytes, at);
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
      out_of_bounds({address, bytes, kAccess, at, worker_.current()});
    shared_access<kAccess>(dynamic_shadow_, address - dynamic_begin_, address, bytes, at);
  } else if (address - static_begin_ < static_bytes_) {
    const size_t offset = address - static_begin_;
    uint16_t variable = variable_of_byte_[offset];
    if (!stays_in_variable(variable, offset, bytes, at)) [[unlikely]]
      out_of_bounds({address, bytes, kAccess, at, worker_.current()}, variable);
    if (!variable) return;  // threadIdx, or a variable that is not __shared__
    shared_access<kAccess>(static_shadow_, offset, address, bytes, at);
  } else if (Checker* const owner = peer_with(address)) {
    access_in<kAccess>(*owner, address, bytes, at);
  } else if (!is_program_memory(address, kAccess)) {
    out_of_bounds({address, bytes, kAccess, at, worker_.current()});
  } else {
    return;
  }
  worker_.yield_sometimes();
}

}  // namespace emulator::source
