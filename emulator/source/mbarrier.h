// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "emulator/source/kernel_api.h"

namespace emulator::source {

/// A barrier in shared memory that counts arrivals and bytes (PTX ISA 8.5, section 9.7.13.15). Its 8 bytes hold a mark
/// and the barrier's number, so that an overwritten barrier is noticed.
struct Mbarrier {
  struct Waiter {
    int thread;
    int parity;
  };

  uintptr_t address;
  int number;
  int expected;     ///< arrivals of each phase
  int pending;      ///< arrivals that this phase still waits for
  int64_t bytes;    ///< bytes that this phase still waits for; below 0 when they came before they were expected
  uint32_t phases;  ///< that have ended
  int made_by;      ///< the thread that called mbarrier_init
  bool fenced;      ///< TMA and other blocks may see it
  SourceLine made_at;
  std::vector<Waiter> waiters;

  bool passes(int parity) const { return static_cast<int>(phases & 1u) != parity; }
  /// `phase 3 (parity 1) of the mbarrier at x.cu:12 (byte 16 of …): 1 of 2 arrivals and 4096 bytes are missing`
  std::string text() const;
};

/// The barriers of one block.
class Mbarriers {
 public:
  static constexpr int64_t kMostBytes = (1 << 20) - 1;
  static constexpr int kMostArrivals = (1 << 20) - 1;

  void reset() { used_ = 0; }
  Mbarrier& make(void* address, int arrivals, int thread, SourceLine where);
  /// nullptr when there is none at this address, or when something has written over it.
  Mbarrier* find(const void* address);
  void fence_all_of(int thread) {
    for (size_t i = 0; i < used_; ++i)
      if (all_[i].made_by == thread) all_[i].fenced = true;
  }

 private:
  std::deque<Mbarrier> all_;
  size_t used_ = 0;
};

}  // namespace emulator::source
