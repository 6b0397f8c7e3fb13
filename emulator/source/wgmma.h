// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "emulator/machine/matrix_descriptor.h"
#include "emulator/source/hopper.h"
#include "emulator/source/kernel_api.h"

namespace emulator::source {

class Worker;

/// The wgmmas of 128 threads. A thread that issues one leaves its part here and runs on; its sums are NaN until the
/// wait for the wgmma's group, where the last of the 128 threads to come computes all of it.
class Warpgroup {
 public:
  static constexpr int kThreads = 128;

  void reset();
  void issue(Worker& worker, const WgmmaCall& call, SourceLine where);
  void fence(int thread);
  void commit(Worker& worker, SourceLine where);
  void wait(Worker& worker, int pending, SourceLine where);
  /// A wgmma of this thread that it has not waited for, or nullptr.
  const SourceLine* unfinished(int thread) const;

 private:
  /// Sums that wgmmas add up; the threads' registers are NaN meanwhile.
  struct Sums {
    int n = 0;
    int unfinished = 0;                 ///< wgmmas
    std::array<float*, kThreads> d{};   ///< where each thread keeps them; stays when they were delivered
    std::array<bool, kThreads> held{};  ///< the registers are NaN
    std::vector<float> values;          ///< 64 rows of n; stay when they were delivered
    SourceLine last{};
  };
  struct Op {
    WgmmaCall call;
    SourceLine where;
    int sums = 0;
    int threads = 0;  ///< that have issued it
    bool done = false;
    std::array<std::array<uint32_t, 4>, kThreads> a;  ///< a from registers
  };

  int find_sums(Worker& worker, size_t thread, const WgmmaCall& call, SourceLine where);
  void take_sums(Worker& worker, Sums& sums, size_t thread, const WgmmaCall& call, SourceLine where);
  void check_operand(Worker& worker, const Op& op, size_t number, bool is_a) const;
  void run(Worker& worker, Op& op);
  /// Computes all wgmmas before number `end`.
  void run_until(Worker& worker, size_t end);
  void deliver(Worker& worker, Sums& sums, SourceLine where);

  std::deque<Op> ops_;
  size_t first_ = 0;                          ///< the number of ops_.front()
  std::vector<size_t> groups_;                ///< number of the op after each group
  std::array<size_t, kThreads> issued_{};     ///< ops, by thread
  std::array<size_t, kThreads> committed_{};  ///< groups, by thread
  std::array<bool, kThreads> fenced_{}, ever_fenced_{};
  std::vector<Sums> sums_;
  int waiting_ = 0;
  int wait_pending_ = 0;
  SourceLine wait_at_{};
};

}  // namespace emulator::source
