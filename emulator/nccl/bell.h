// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>

namespace emulator::nccl {

/// A rank sleeps on it, in memory that processes share. Every change that the rank may wait for rings it.
class Bell {
 public:
  uint32_t rung() const { return count_.load(); }
  void ring();
  /// Returns when the bell has been rung since `rung`, or after `limit`, or for no reason.
  void wait(uint32_t rung, std::chrono::milliseconds limit);

 private:
  std::atomic<uint32_t> count_;
  std::atomic<uint32_t> sleepers_;
};

}  // namespace emulator::nccl
