// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <string>
#include <vector>

#include "emulator/nccl/communicator.h"

namespace emulator::nccl {

/// Checks, while a rank sleeps, whether its wait can still end.
class Watch {
 public:
  Watch(Communicator& c, Segment& s, const Communicator::Wait& wait);
  ~Watch();
  /// After each sleep. Fails the communicator when the wait is vain.
  void look();

 private:
  using Clock = std::chrono::steady_clock;
  struct Member {
    int rank;
    uint64_t moves, beats;
  };
  void look_at(int peer);
  void look_for_deadlock();
  std::vector<Member> circle() const;
  std::string text_of(int rank) const;
  bool has_died(int rank) const;

  Communicator& c_;
  Segment& s_;
  const Communicator::Wait& wait_;
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point next_look_ = begin_ + std::chrono::milliseconds(100);
  bool published_ = false;
  std::vector<Member> circle_;  ///< as at the previous look
};

}  // namespace emulator::nccl
