// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <limits>
#include <memory>
#include <mutex>
#include <thread>

#include "emulator/machine/fault.h"
#include "emulator/source/check.h"
#include "emulator/source/cluster.h"
#include "emulator/source/simt.h"
#include "emulator/source/stream.h"
#include "emulator/source/worker.h"

// Spreads the blocks of a grid over OS threads. A block stays on the thread that started it.

namespace emulator::source {

namespace {

uint64_t seed_from_environment() {
  const char* text = std::getenv("WEFT_SIMT_SEED");
  return text ? std::strtoull(text, nullptr, 10) : 0;
}

int clamp_threads(int wanted) {
  // Each worker may need 1024 stacks, and Linux gives a process 65530 mappings. The checked build's record of accesses
  // is one thread's, and so its reports are the same in every run.
  return std::clamp(wanted, 1, access_checks() ? 1 : 16);
}

int threads_from_environment() {
  const char* text = std::getenv("WEFT_SIMT_THREADS");
  return clamp_threads(text ? std::atoi(text) : static_cast<int>(std::thread::hardware_concurrency()));
}

int capability_from_environment() {
  const char* text = std::getenv("WEFT_SIMT_CAPABILITY");
  return text && std::atoi(text) == 80 ? 80 : 90;
}

std::atomic<int> capability{capability_from_environment()};
std::atomic<uint64_t> seed{seed_from_environment()};
std::atomic<int> threads{threads_from_environment()};
std::atomic<int64_t> fixed_launches{0}, random_launches{0}, nanoseconds{0};

/// Visits every block once: in order, or in an order given by the seed.
class BlockOrder {
 public:
  BlockOrder(uint64_t blocks, uint64_t seed_) : blocks_(blocks) {
    if (seed_ == 0) return;
    start_ = seed_ % blocks;
    step_ = (seed_ * 0x9e3779b97f4a7c15u >> 20) % blocks;
    while (greatest_common_divisor(step_, blocks) != 1) step_ = (step_ + 1) % blocks;
  }
  uint64_t blocks() const { return blocks_; }
  uint64_t operator()(uint64_t i) const {
    __extension__ using Wide = unsigned __int128;
    return static_cast<uint64_t>((static_cast<Wide>(i) * step_ + start_) % blocks_);
  }

 private:
  static uint64_t greatest_common_divisor(uint64_t a, uint64_t b) {
    while (b) std::swap(a %= b, b);
    return a;
  }
  uint64_t blocks_, start_ = 0, step_ = 1;
};

struct Job {
  Job(const Launch& launch_, uint64_t blocks_, uint64_t cluster_, uint64_t chunk_, uint64_t seed_)
      : launch(launch_),
        blocks(blocks_),
        chunk(chunk_),
        order_seed(seed_),
        order(blocks_ / cluster_, seed_),
        clock(check_launch(blocks_, cluster_)) {}

  const Launch& launch;
  const uint64_t blocks, chunk, order_seed;
  const BlockOrder order;  ///< of clusters, where the launch has such
  const std::shared_ptr<LaunchClock> clock;
  std::atomic<uint64_t> next{0};
  std::atomic<bool> failed{false};
  std::mutex mutex;
  uint64_t failed_block = std::numeric_limits<uint64_t>::max();
  std::string error;

  void work(Worker& worker) {
    while (!failed.load(std::memory_order_relaxed)) {
      const uint64_t begin = next.fetch_add(chunk), end = std::min(begin + chunk, blocks);
      if (begin >= end) return;
      for (uint64_t i = begin; i < end; ++i)
        if (!worker.run_block(launch, clock.get(), order(i), order_seed)) return fail(i, worker.error());
    }
  }

  /// Clusters run one after the other: their blocks run on OS threads of their own, in turns.
  void work_on_clusters() {
    const auto c = launch.cluster;
    const int size = static_cast<int>(c.x * c.y * c.z);
    run_team(size, [&](int) { Worker::mine(); });
    for (uint64_t i = 0; i < order.blocks() && !failed; ++i) {
      Cluster cluster(size, order(i));
      run_team(size, [&](int rank) {
        const uint64_t block = block_of(launch, cluster.number(), static_cast<uint64_t>(rank));
        Worker& worker = Worker::mine();
        if (!worker.run_member(cluster, rank, launch, clock.get(), block, order_seed) && !worker.abandoned())
          fail(i, worker.error());
      });
    }
  }

  void fail(uint64_t block, const std::string& text) {
    std::lock_guard lock(mutex);
    failed = true;
    if (block > failed_block) return;
    failed_block = block;
    error = text;
  }
};

/// Helper threads wait here for a job. One job at a time: a second caller runs its grid alone.
class Pool {
 public:
  /// True when the helpers took part (or could have); false when another grid has them.
  bool run(Job& job, int helpers) {
    std::unique_lock lock(mutex_);
    if (job_) return false;
    while (helpers_ < helpers) {
      std::thread([this, id = helpers_] { help(id); }).detach();
      ++helpers_;
    }
    job_ = &job;
    ++generation_;
    wanted_ = helpers;
    lock.unlock();
    wake_.notify_all();
    job.work(Worker::mine());
    lock.lock();
    job_ = nullptr;
    idle_.wait(lock, [&] { return active_ == 0; });
    return true;
  }

 private:
  void help(int id) {
    uint64_t done = 0;
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return job_ && generation_ != done && id < wanted_; });
      done = generation_;
      Job* job = job_;
      ++active_;
      lock.unlock();
      job->work(Worker::mine());
      lock.lock();
      if (--active_ == 0) idle_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_, idle_;
  Job* job_ = nullptr;
  uint64_t generation_ = 0;
  int helpers_ = 0, wanted_ = 0, active_ = 0;
};

Pool& pool() {
  static Pool& pool = *new Pool;  // its threads never end
  return pool;
}

}  // namespace

void set_schedule_seed(uint64_t value) {
  finish_streams();
  seed = value;
}
uint64_t schedule_seed() { return seed; }
void set_thread_count(int count) {
  finish_streams();
  threads = clamp_threads(count);
}
int thread_count() { return threads; }
void set_device_capability(int value) {
  finish_streams();
  capability = value;
}
int device_capability() { return capability; }
Usage usage() { return {fixed_launches, random_launches, static_cast<double>(nanoseconds) * 1e-9}; }

uint64_t block_of(const Launch& launch, uint64_t cluster, uint64_t rank) {
  const auto c = launch.cluster, g = launch.grid;
  const uint64_t across = g.x / c.x, down = g.y / c.y;
  const uint64_t x = cluster % across * c.x + rank % c.x, y = cluster / across % down * c.y + rank / c.x % c.y,
                 z = cluster / across / down * c.z + rank / c.x / c.y;
  return x + g.x * (y + g.y * z);
}

void run_grid(const Launch& launch) {
  const auto begin = std::chrono::steady_clock::now();
  const uint64_t blocks = uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z;
  const uint64_t block_threads = uint64_t{launch.block.x} * launch.block.y * launch.block.z;
  const int workers = static_cast<int>(std::min<uint64_t>(static_cast<uint64_t>(threads.load()), blocks));
  const uint64_t cluster = uint64_t{launch.cluster.x} * launch.cluster.y * launch.cluster.z;
  Job job(launch, blocks, cluster, std::max<uint64_t>(1, blocks / (static_cast<uint64_t>(workers) * 8)), seed);
  // Waking a thread costs some ten microseconds.
  const bool small = blocks * block_threads < 2048;
  if (cluster > 1)
    job.work_on_clusters();
  else if (workers == 1 || small || !pool().run(job, workers - 1))
    job.work(Worker::mine());
  ++(job.order_seed == 0 ? fixed_launches : random_launches);
  nanoseconds += std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
  if (job.failed) throw Fault(FaultCode::launch_failure, job.error);
}

}  // namespace emulator::source
