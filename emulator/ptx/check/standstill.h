// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "emulator/ptx/run/warp.h"

// Kernels that wait for each other by reading memory: a grid barrier, a lock, a flag. All threads of all running
// kernels may return to an earlier state without a change of memory meanwhile. Then they do so for ever, unless the
// host or a device changes the memory that they read.

namespace emulator::ptx {

/// The view of one OS thread that runs clusters of a launch.
class Standstill {
 public:
  explicit Standstill(Grid& grid);
  ~Standstill();
  Standstill(const Standstill&) = delete;
  Standstill& operator=(const Standstill&) = delete;

  /// Threads have changed memory, or have gone on.
  void moved();
  /// Each of the clusters has had a turn, in which its threads read memory and nothing moved. True: no kernel can go on.
  /// Memory that the host writes, too, is never waited for in vain.
  bool is_final(const std::vector<std::unique_ptr<Cluster>>& clusters);

 private:
  using Clock = std::chrono::steady_clock;
  Grid& grid_;
  uint64_t quiet_ = 0;                     ///< turns of all clusters since something moved
  uint64_t saved_ = 0, saved_changes_ = 0;  ///< a state of the threads, by its hash, and of memory …
  uint64_t saved_at_ = 0, next_save_ = 0;   ///< … of this turn; after how many another one is kept
  uint64_t period_ = 0;                     ///< period of the threads' states, when one has come back
  Clock::time_point since_;                 ///< when it had
};

/// Asked before kernels are given up. True: memory has been changed from outside, or may be. nullptr: it cannot be.
inline bool (*others_may_change_memory)(int device) = nullptr;
/// A load that may be one of a loop that waits; only while grid.suspected.
void note_spin(const Warp& w, uint32_t lanes, char* const* at);

}  // namespace emulator::ptx
