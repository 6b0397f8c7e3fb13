// SPDX-License-Identifier: Apache-2.0
#include "emulator/source/cluster.h"

#include <thread>

#include "emulator/machine/fault.h"
#include "emulator/source/check.h"
#include "emulator/source/hopper.h"
#include "emulator/source/hopper_block.h"
#include "emulator/source/report.h"
#include "emulator/source/worker.h"

namespace emulator::source {

int Cluster::exited_threads() const {
  int exited = 0;
  for (int r = 0; r < size_; ++r) exited += member(r).exited_count();
  return exited;
}

bool Cluster::join(int rank, Worker& worker, uint64_t seed) {
  std::unique_lock lock(mutex_);
  members_[static_cast<size_t>(rank)] = &worker;
  if (++joined_ == size_) {
    turn_ = static_cast<int>(seed % static_cast<uint64_t>(size_));
    wake_[static_cast<size_t>(turn_)].notify_one();
  }
  wake_[static_cast<size_t>(rank)].wait(lock, [&] { return turn_ == rank || failed_; });
  begun_[static_cast<size_t>(rank)] = true;
  return !failed_;
}

void Cluster::pass_on(int rank) {
  for (int i = 1; i < size_; ++i) {
    const int next = (rank + i) % size_;
    if (left_[static_cast<size_t>(next)]) continue;
    turn_ = next;
    wake_[static_cast<size_t>(next)].notify_one();
    return;
  }
}

void Cluster::leave(int rank, bool failed) {
  std::unique_lock lock(mutex_);
  left_[static_cast<size_t>(rank)] = true;
  ++gone_;
  if (failed && !failed_) {
    failed_ = true;
    for (auto& wake : wake_) wake.notify_one();
  }
  if (!failed_) pass_on(rank);
  if (gone_ == size_) all_left_.notify_all();
  all_left_.wait(lock, [&] { return gone_ == size_; });
}

void Cluster::hand_over(int from, int to) {
  std::unique_lock lock(mutex_);
  turn_ = to;
  wake_[static_cast<size_t>(to)].notify_one();
  wake_[static_cast<size_t>(from)].wait(lock, [&] { return turn_ == from || failed_; });
  if (!failed_) return;
  lock.unlock();
  member(from).abandon();
}

bool Cluster::yield_to_runnable(int rank) {
  for (int i = 1; i < size_; ++i) {
    const int next = (rank + i) % size_;
    if (has_left(next) || !member(next).can_run()) continue;
    hand_over(rank, next);
    return true;
  }
  return false;
}

bool Cluster::yield_to_copying(int rank) {
  for (int i = 1; i < size_; ++i) {
    const int next = (rank + i) % size_;
    if (has_left(next) || !member(next).has_loads()) continue;
    hand_over(rank, next);
    return true;
  }
  return false;
}

namespace {

/// OS threads that are kept for the blocks of clusters.
class Team {
 public:
  void run(int size, const std::function<void(int)>& body) {
    std::lock_guard one_at_a_time(running_);
    {
      std::lock_guard lock(mutex_);
      for (; helpers_ < size - 1; ++helpers_) std::thread([this, rank = helpers_ + 1] { help(rank); }).detach();
      body_ = &body;
      size_ = size;
      left_ = size - 1;
      ++generation_;
    }
    wake_.notify_all();
    body(0);
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return left_ == 0; });
  }

 private:
  void help(int rank) {
    uint64_t seen = 0;
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return generation_ != seen && rank < size_; });
      seen = generation_;
      const auto* body = body_;
      lock.unlock();
      (*body)(rank);
      lock.lock();
      if (--left_ == 0) done_.notify_one();
    }
  }

  std::mutex running_, mutex_;
  std::condition_variable wake_, done_;
  const std::function<void(int)>* body_ = nullptr;
  uint64_t generation_ = 0;
  int helpers_ = 0, size_ = 0, left_ = 0;
};

}  // namespace

void run_team(int size, const std::function<void(int rank)>& body) {
  static Team& team = *new Team;  // its threads never end
  team.run(size, body);
}

// Called by kernel code.

namespace {

void settle(Worker& worker, ClusterBarrier& barrier) {
  if (barrier.arrived == 0 || barrier.arrived < worker.cluster_threads_left()) return;
  barrier.arrived = 0;
  ++barrier.phases;
  check_cluster_barrier();
  for (const ClusterBarrier::Waiter& waiter : barrier.waiting) waiter.worker->wake(waiter.thread);
  barrier.waiting.clear();
}

}  // namespace

void cluster_thread_exited(Worker& worker) { settle(worker, worker.cluster_barrier()); }

int cluster_rank() { return Worker::running()->rank(); }

void cluster_arrive(SourceLine where) {
  Worker& worker = *Worker::running();
  ClusterBarrier& barrier = worker.cluster_barrier();
  int64_t& arrived = worker.hopper().cluster_arrival[static_cast<size_t>(worker.current())];
  if (arrived >= 0)
    worker.report().fail([&] { return cat("cluster_arrive at ", where, ": this thread has arrived and not waited"); });
  arrived = barrier.phases;
  check_cluster_arrive();
  ++barrier.arrived;
  settle(worker, barrier);
}

void cluster_wait(SourceLine where) {
  Worker& worker = *Worker::running();
  ClusterBarrier& barrier = worker.cluster_barrier();
  int64_t& arrived = worker.hopper().cluster_arrival[static_cast<size_t>(worker.current())];
  if (arrived < 0)
    worker.report().fail([&] { return cat("cluster_wait at ", where, ": this thread has not arrived"); });
  if (static_cast<int64_t>(barrier.phases) == arrived) {
    barrier.waiting.push_back({&worker, worker.current()});
    worker.block("cluster_wait", &barrier, where);
  }
  arrived = -1;
  check_cluster_acquire();
}

void* cluster_map(const void* pointer, int rank, SourceLine where) {
  Worker& worker = *Worker::running();
  worker.check_shared("cluster_map", pointer, 1, where);
  if (rank < 0 || rank >= worker.cluster_size())
    worker.report().fail(
        [&] { return cat("cluster_map at ", where, ": block ", rank, " of a cluster of ", worker.cluster_size()); });
  return worker.map_to(worker.member(rank), pointer);
}

}  // namespace emulator::source
