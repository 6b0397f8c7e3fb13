// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "emulator/source/kernel_api.h"

namespace emulator::source {

class Worker;

/// barrier.cluster: all threads of all blocks that have not exited.
struct ClusterBarrier {
  struct Waiter {
    Worker* worker;
    int thread;
  };
  int arrived = 0;
  uint32_t phases = 0;
  std::vector<Waiter> waiting;
};

/// Blocks that run together. Each has an OS thread of its own, and so static shared memory of its own, but only one of
/// them runs at a time: a block runs until all of its threads wait, and then hands over to the next one that can run.
class Cluster {
 public:
  static constexpr int kMost = 8;

  Cluster(int size, uint64_t number) : size_(size), number_(number) {}

  int size() const { return size_; }
  uint64_t number() const { return number_; }
  Worker& member(int rank) const { return *members_[static_cast<size_t>(rank)]; }
  bool has_begun(int rank) const { return begun_[static_cast<size_t>(rank)]; }
  bool has_left(int rank) const { return left_[static_cast<size_t>(rank)]; }
  ClusterBarrier& barrier() { return barrier_; }
  int exited_threads() const;

  /// The block is ready to run; returns when it is its turn. False when another block has failed.
  bool join(int rank, Worker& worker, uint64_t seed);
  /// The block has ended. Returns when all have.
  void leave(int rank, bool failed);
  /// Lets another block run whose threads can; false when there is none, true after its turn.
  bool yield_to_runnable(int rank);
  /// Lets another block run that has copies under way.
  bool yield_to_copying(int rank);

 private:
  void hand_over(int from, int to);
  void pass_on(int rank);

  const int size_;
  const uint64_t number_;  ///< in the grid
  std::array<Worker*, kMost> members_{};
  std::array<bool, kMost> begun_{}, left_{};
  ClusterBarrier barrier_;
  std::mutex mutex_;
  std::array<std::condition_variable, kMost> wake_;
  std::condition_variable all_left_;
  int joined_ = 0, gone_ = 0;
  int turn_ = -1;
  bool failed_ = false;
};

/// Calls body(rank) for 0 .. size - 1, each on an OS thread of its own, the caller's being the first. One caller at a
/// time; the threads are kept.
void run_team(int size, const std::function<void(int rank)>& body);

}  // namespace emulator::source
