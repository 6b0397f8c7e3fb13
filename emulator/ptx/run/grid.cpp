// SPDX-License-Identifier: Apache-2.0
// How a grid runs: OS threads take clusters in order; a cluster's warps alternate. A cluster whose warps only spin lets
// the next begin. So blocks may wait for each other, as far as a GPU would hold them at the same time.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

#include "emulator/machine/findings.h"
#include "emulator/machine/options.h"
#include "emulator/machine/per_thread.h"
#include "emulator/ptx/check/checker.h"
#include "emulator/ptx/check/standstill.h"
#include "emulator/ptx/instructions/mbarrier.h"
#include "emulator/ptx/run/device_launch.h"
#include "emulator/ptx/run/warp.h"
#include "emulator/ptx/time/count.h"
#include "emulator/ptx/time/profile.h"
#include "emulator/ptx/time/time_count.h"

namespace emulator::ptx {

namespace {

constexpr int32_t kFuel = 1 << 14;  // backward branches of a turn
constexpr size_t kAlignment = 64;

size_t round_up(size_t value, size_t to) { return (value + to - 1) / to * to; }

uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// Memory of blocks that have ended, for the next ones: one per OS thread.
class BlockMemory {
 public:
  static void release(void* memory) {
    if (pool().size() < 64)
      pool().push_back({static_cast<Header*>(memory)[-1].bytes, static_cast<char*>(memory)});
    else
      std::free(static_cast<char*>(memory) - kAlignment);
  }
  static char* take(size_t bytes) {
    for (size_t k = pool().size(); k-- > 0;)
      if (pool()[k].first >= bytes && pool()[k].first <= 2 * bytes) {
        char* const memory = pool()[k].second;
        pool().erase(pool().begin() + static_cast<std::ptrdiff_t>(k));
        return memory;
      }
    char* const whole = static_cast<char*>(std::aligned_alloc(kAlignment, round_up(bytes, kAlignment) + kAlignment));
    if (!whole) throw std::bad_alloc();
    reinterpret_cast<Header*>(whole + kAlignment)[-1].bytes = bytes;
    return whole + kAlignment;
  }

 private:
  struct Header {
    size_t bytes;
  };
  static std::vector<std::pair<size_t, char*>>& pool() {
    struct Pool {
      std::vector<std::pair<size_t, char*>> free;
      ~Pool() {
        for (const auto& [bytes, memory] : free) std::free(memory - kAlignment);
      }
    };
    return per_thread<Pool>().free;
  }
};

/// Clears a cluster that has ended: the next one gets its blocks with their memory.
void forget(Cluster& cluster) {
  cluster.barrier_arrived = cluster.barrier_phase = cluster.threads = 0;
  cluster.time = nullptr;
  cluster.time_owner.reset();
  for (const auto& block : cluster.blocks) {
    block->barriers = {};
    block->open_barriers = 0;
    block->hopper.reset();
    block->register_pool.reset();
    block->checks.reset();
    block->pending.clear();
  }
}

void begin_block(Block& block, const Grid& grid) {
  const Kernel& kernel = *grid.kernel;
  const Launch& launch = *grid.launch;
  block.threads = block.live_threads = static_cast<uint32_t>(launch.block.count());
  const uint32_t warps = (block.threads + kLanes - 1) / kLanes;
  const uint32_t static_end = kernel.scratch ? kernel.scratch + kScratchBytes : kSharedBase + kernel.static_shared;
  const uint32_t dynamic_begin = static_cast<uint32_t>(round_up(static_end, std::max(16u, kernel.dynamic_align)));
  block.shared_end = dynamic_begin + launch.dynamic_shared;

  const size_t register_bytes = round_up(kernel.register_bytes, kAlignment);
  const size_t predicate_bytes = round_up(size_t{kernel.predicates} * sizeof(uint32_t), kAlignment);
  const size_t lane_bytes = kernel.local_bytes + (kernel.has_stack ? round_up(launch.stack_bytes, 16) : 0);
  const size_t local_bytes = round_up(lane_bytes * kLanes, kAlignment);
  const size_t warp_bytes = register_bytes + predicate_bytes + local_bytes;
  // Shared memory as the hardware aligns it: swizzles look at its addresses, which are offsets here.
  const size_t shared_bytes = round_up(block.shared_end, 1024);
  if (!block.memory) block.memory = {BlockMemory::take(shared_bytes + warps * warp_bytes), BlockMemory::release};
  char* memory = static_cast<char*>(block.memory.get());
  block.shared = memory;
  std::memset(memory + kSharedBase, 0xff, shared_bytes - kSharedBase);
  if (kernel.scratch) std::memset(memory + kernel.scratch, 0, kScratchBytes);
  memory += shared_bytes;

  block.warps.resize(warps);
  for (uint32_t w = 0; w < warps; ++w, memory += warp_bytes) {
    Warp& warp = block.warps[w];
    std::vector<Group> groups = std::move(warp.groups);  // its memory
    warp = {};
    warp.groups = std::move(groups);
    warp.registers = memory;
    warp.predicates = reinterpret_cast<uint32_t*>(memory + register_bytes);
    warp.local = memory + register_bytes + predicate_bytes;
    warp.constants = kernel.constants;
    std::memset(warp.predicates, 0, predicate_bytes);
    warp.local_bytes = static_cast<uint32_t>(lane_bytes);
    for (size_t l = 0; kernel.local_bytes && l < kLanes; ++l) std::memset(warp.local + l * lane_bytes, 0xff, kernel.local_bytes);
    warp.block = &block;
    warp.index = w;
    warp.first_thread = w * kLanes;
    const uint32_t lanes = std::min<uint32_t>(kLanes, block.threads - w * kLanes);
    const uint32_t mask = lanes == kLanes ? ~0u : (1u << lanes) - 1;
    warp.exited = ~mask;
    warp.groups.assign(1, {kernel.code.data(), mask, Group::State::ready, nullptr, 0, 0});
  }
}

/// Applies one pending operation; false when there is none. The oldest of the first block with pending operations, or a
/// random one.
bool apply_pending(Cluster& cluster) {
  size_t count = 0;
  for (const auto& block : cluster.blocks) count += block->pending.size();
  if (count == 0) return false;
  size_t chosen = cluster.choose(static_cast<uint32_t>(count));
  for (const auto& block : cluster.blocks) {
    auto& pending = block->pending;
    if (chosen >= pending.size()) {
      chosen -= pending.size();
      continue;
    }
    const std::shared_ptr<Pending> next = pending[chosen];
    pending.erase(pending.begin() + static_cast<std::ptrdiff_t>(chosen));
    next->apply();
    return true;
  }
  return false;
}

/// Lets threads at griddepcontrol.wait go on, now that the cluster's others can do nothing without them: all accesses
/// that the wait does not precede have happened. False: there are no such threads.
bool end_wait(Cluster& cluster) {
  if (!std::exchange(cluster.waits, false)) return false;
  while (apply_pending(cluster)) {
  }
  cluster.touched = cluster.grid->touched;
  return true;
}

/// Wakes other OS threads once a launch has run for longer than that takes.
class Help {
 public:
  explicit Help(std::function<void()> call) : call_(std::move(call)) {}
  /// Called again and again by the launching thread.
  void consider(const Grid& grid, uint64_t clusters) {
    if (!call_ || grid.next_cluster.load(std::memory_order_relaxed) >= clusters || Clock::now() - begun_ < kPatience) return;
    std::exchange(call_, nullptr)();
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr auto kPatience = std::chrono::microseconds(20);
  std::function<void()> call_;
  Clock::time_point begun_ = Clock::now();
};

enum class Round { worked, spins, stuck, done };

/// A turn for every warp of the cluster that can run; `after_each` is called after each. `spins`: all threads only read memory.
template <class F>
Round run_round(Cluster& cluster, const F& after_each) {
  bool worked = false, yielded = false, spins = false, changed = false;
  const bool random = cluster.random_order() && !cluster.grid->suspected;
  const uint32_t live_threads = cluster.live_threads;
  for (const auto& block : cluster.blocks) {
    const size_t warps = block->warps.size(), first = random ? cluster.choose(static_cast<uint32_t>(warps)) : 0;
    for (size_t k = 0; k < warps; ++k) {
      Warp& warp = block->warps[(first + k) % warps];
      if (warp.groups.empty()) continue;
      if (warp.groups.size() == 1 && warp.groups[0].state == Group::State::blocked) continue;
      warp.spins = warp.changed = false;
      const Turn turn = warp.run(random ? 1 + static_cast<int32_t>(cluster.choose(kFuel)) : kFuel);
      after_each();
      worked = worked || turn == Turn::waits;
      yielded = yielded || turn == Turn::yields;
      spins = spins || warp.spins;
      changed = changed || warp.changed;
      if (random && cluster.choose(4) == 3 && apply_pending(cluster)) worked = changed = true;
    }
  }
  if (cluster.live_threads == 0) {
    while (apply_pending(cluster)) {
    }
    return Round::done;
  }
  if (changed || cluster.live_threads != live_threads || (worked && !spins)) return Round::worked;
  if (worked) return Round::spins;
  // Mostly threads wait for mbarriers: in the fixed order they are not asked again before a phase has ended.
  bool applied = false;
  cluster.phase_ended = false;
  while (!cluster.phase_ended && !(applied && random) && apply_pending(cluster)) applied = true;
  if (applied) return Round::worked;
  if (yielded) return spins ? Round::spins : Round::worked;
  return Round::stuck;
}

/// Describes what every thread of a cluster waits for.
std::string waits_text(const Cluster& cluster) {
  std::string text;
  int lines = 0;
  for (const auto& block : cluster.blocks)
    for (Warp& warp : block->warps)
      for (const Group& group : warp.groups) {
        if (++lines > 16) return text + "\n  …";
        text += cat("\n  ", thread_text(warp, std::countr_zero(group.mask)),
                    std::popcount(group.mask) > 1 ? cat(" and ", std::popcount(group.mask) - 1, " more of its warp") : "",
                    " waits for ", group.waits_for ? group.waits_for : "a change of memory", " at ",
                    warp.kernel().where(group.pc));
        text += missing_text(warp, group);
        const uint32_t members = group.state == Group::State::meeting ? static_cast<uint32_t>(group.wait_key) : 0;
        if (const uint32_t absent = members & ~warp.exited & ~group.mask)
          text += cat(", whose mask ", mask_text(members), " names ", lanes_text(absent), ": elsewhere");
      }
  return text;
}

class Run {
 public:
  Run(const Launch& launch, Touched* touched, Touched* early) : launch_(launch) {
    grid_.touched = touched;
    grid_.early = early;
    grid_.launch = &launch;
    grid_.kernel = launch.kernel;
    grid_.blocks = launch.grid.count();
    grid_.seed = seed();
    grid_.launches = &launches_;
    grid_.cluster_dim = launch.cluster;
    grid_.cluster_blocks = static_cast<uint32_t>(launch.cluster.count());
    clusters_ = grid_.blocks / grid_.cluster_blocks;
    if (timed()) {
      time_ = std::make_unique<timing::LaunchTime>(launch);
      grid_.next_cluster = time_->first();
      clusters_ = time_->first() + time_->count();
    }
    const size_t bytes = round_up(std::max<size_t>(1, launch.parameters.size()), kAlignment);
    parameters_.reset(static_cast<char*>(std::aligned_alloc(kAlignment, bytes)));
    std::memcpy(parameters_.get(), launch.parameters.data(), launch.parameters.size());
    register_range(parameters_.get(), bytes, MemoryKind::parameters, launch.device);
    grid_.parameters = parameters_.get();
    if (launch.cooperative) {
      constexpr uint32_t kWorkspace = Grid::kWorkspace;
      workspace_ = static_cast<char*>(allocate(kWorkspace, MemoryKind::managed, launch.device));
      if (!workspace_) throw Fault(FaultCode::launch_failure, "no memory for a cooperative launch");
      std::memset(workspace_, 0, kWorkspace);
      std::memcpy(workspace_, &kWorkspace, sizeof(kWorkspace));  // its size comes first
      grid_.sync_workspace = workspace_;
    }
    begin_checks(grid_);
    profile_ = begin_profile(grid_);
  }
  ~Run() {
    end_profile(grid_, std::move(profile_));
    unregister_range(parameters_.get());
    if (workspace_) release(workspace_, MemoryKind::managed);
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  /// One OS thread's part of the grid. `help`: of the launching thread.
  void work(Help* help = nullptr) {
    Worker own;
    const double begun = counts() ? thread_seconds() : 0;
    work(own, help);
    if (!counts()) return;
    const std::lock_guard lock(mutex_);
    count_.warp_instructions += own.count.warp_instructions;
    count_.lane_instructions += own.count.lane_instructions;
    count_.seconds += thread_seconds() - begun;
  }

  /// How many OS threads may run it: the checks want one.
  uint64_t most_workers() const {
    return grid_.checked ? 1 : std::min(clusters_, static_cast<uint64_t>(std::max(1, options().threads)));
  }
  const Count& count() const { return count_; }
  void report_time() {
    if (time_ && !failure_) timing::report(launch_, time_->work());
  }
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }
  void report_no_wait() const {
    if (!grid_.early || grid_.waited) return;
    report_finding(
        "no griddepcontrol.wait",
        cat(launch_text(launch_),
            " was launched with programmatic stream serialization, and no thread executed "
            "griddepcontrol.wait: it may end before the previous kernel, for which then no later kernel waits"),
        launch_.kernel->name);
  }
  void run_launches() { launches_.run(launch_, grid_.seed, grid_.touched); }

 private:
  DeviceLaunches launches_;

  struct Worker {
    std::array<Block::Known, Block::kKnown> known;
    Count count;
    std::vector<std::unique_ptr<Cluster>> resident;
    std::unique_ptr<Cluster> ended;
  };

  void work(Worker& own, Help* help) {
    std::vector<std::unique_ptr<Cluster>>& resident = own.resident;
    size_t turn = 0;
    Standstill standstill(grid_);
    try {
      for (;;) {
        if (grid_.failed.load(std::memory_order_relaxed)) return;
        if (resident.empty() && !begin_cluster(own)) return;
        turn %= resident.size();
        const Round round = run_round(*resident[turn], [&] {
          if (help) help->consider(grid_, clusters_);
        });
        if (round == Round::done || round == Round::worked) standstill.moved();
        if (round == Round::done) {
          if (time_) time_->add(*resident[turn]->time);
          forget(*resident[turn]);
          own.ended = std::move(resident[turn]);
          resident.erase(resident.begin() + static_cast<std::ptrdiff_t>(turn));
          continue;
        }
        if (round == Round::worked) continue;
        if (end_wait(*resident[turn])) {
          standstill.moved();
          continue;
        }
        // A cluster's barriers lie in its own shared memory: no other cluster can wake them.
        if (round == Round::stuck)
          throw Fault(FaultCode::launch_timeout,
                      cat(launch_text(launch_), ": deadlock: no thread can run any more", waits_text(*resident[turn])));
        // This cluster polls memory that other clusters may write: the next, or a later one.
        const bool begun = resident.size() < most_resident() && begin_cluster(own);
        turn = begun ? resident.size() - 1 : turn + 1;
        if (begun) standstill.moved();
        if (turn < resident.size() || !standstill.is_final(resident)) continue;
        if (std::ranges::any_of(resident, [](const auto& cluster) { return apply_pending(*cluster); }))
          standstill.moved();
        else if (others_may_change_memory && others_may_change_memory(launch_.device))
          standstill.moved();
        else
          throw Fault(FaultCode::launch_timeout, cat(launch_text(launch_), ": deadlock: ", resident_text(resident)));
      }
    } catch (...) {
      fail(std::current_exception());
    }
  }

  /// The waits of all threads when all only read memory.
  std::string resident_text(const std::vector<std::unique_ptr<Cluster>>& resident) const {
    std::string text = "all threads that run read memory that nothing changes";
    const uint64_t begun = std::min(grid_.next_cluster.load(), clusters_);
    if (begun < clusters_) text += cat("; ", clusters_ - begun, " of ", clusters_, " blocks or clusters have not begun");
    if (launch_.cooperative) text += "; a barrier of the grid waits for all of its blocks";
    for (const auto& cluster : resident) {
      if (text.size() > 4000) return text + "\n  …";
      text += waits_text(*cluster);
    }
    return text;
  }

  /// As many as a GPU could hold, within reason for memory.
  size_t most_resident() const {
    if (launch_.cooperative) return clusters_;
    const uint64_t warps = std::max<uint64_t>(1, (launch_.block.count() + kLanes - 1) / kLanes * grid_.cluster_blocks);
    return std::max<uint64_t>(1, std::min<uint64_t>(256, 4096 / warps));
  }

  bool begin_cluster(Worker& own) {
    const uint64_t number = grid_.next_cluster.fetch_add(1, std::memory_order_relaxed);
    if (number >= clusters_) return false;
    auto cluster = own.ended ? std::move(own.ended) : std::make_unique<Cluster>();
    cluster->blocks.resize(grid_.cluster_blocks);
    cluster->grid = &grid_;
    cluster->number = number;
    cluster->touched = grid_.early ? grid_.early : grid_.touched;
    cluster->waits = false;
    if (counts() || grid_.profile || time_) cluster->count = &own.count;
    cluster->random = mixed(grid_.seed ^ mixed(launch_.number ^ mixed(number)));
    const Dim3 size = grid_.cluster_dim, count{launch_.grid.x / size.x, launch_.grid.y / size.y, launch_.grid.z / size.z};
    cluster->index = {static_cast<uint32_t>(number % count.x), static_cast<uint32_t>(number / count.x % count.y),
                      static_cast<uint32_t>(number / count.x / count.y)};
    for (uint32_t rank = 0; rank < grid_.cluster_blocks; ++rank) {
      std::unique_ptr<Block>& block = cluster->blocks[rank];
      if (!block) block = std::make_unique<Block>();
      block->grid = &grid_;
      block->cluster = cluster.get();
      block->known = own.known.data();
      block->rank = rank;
      block->index = {cluster->index.x * size.x + rank % size.x, cluster->index.y * size.y + rank / size.x % size.y,
                      cluster->index.z * size.z + rank / size.x / size.y};
      block->number = block->index.x + uint64_t{launch_.grid.x} * (block->index.y + uint64_t{launch_.grid.y} * block->index.z);
      begin_block(*block, grid_);
      cluster->threads += block->threads;
    }
    cluster->live_threads = cluster->threads;
    if (time_) {
      const auto time = std::make_shared<timing::ClusterTime>(*cluster, *time_);
      cluster->time = time.get();
      cluster->time_owner = time;
    }
    if (grid_.checks) begin_checks(*cluster);
    own.resident.push_back(std::move(cluster));
    return true;
  }

  void fail(std::exception_ptr failure) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(failure);
    grid_.failed = true;
  }

  struct Free {
    void operator()(char* memory) const { std::free(memory); }
  };
  const Launch& launch_;
  Grid grid_;
  uint64_t clusters_ = 0;
  std::unique_ptr<LaunchProfile> profile_;
  std::unique_ptr<char, Free> parameters_;
  char* workspace_ = nullptr;
  std::mutex mutex_;
  std::exception_ptr failure_;
  Count count_;
  std::unique_ptr<timing::LaunchTime> time_;
};

/// OS threads that help the one that launches. They are never joined: the process ends with them asleep.
class Helpers {
 public:
  static Helpers& get() {
    static Helpers* const helpers = new Helpers;
    return *helpers;
  }

  /// Calls `work` on `others` threads; not while they help another launch, which may be waiting for this work.
  /// Returns whether end() must be called.
  bool begin(uint32_t others, const std::function<void()>& work) {
    if (busy_.test_and_set()) return false;
    {
      std::unique_lock lock(mutex_);
      while (threads_ < others) {
        std::thread([this, number = threads_] { sleep(number); }).detach();
        ++threads_;
      }
      work_ = &work;
      wanted_ = others;
      ++generation_;
    }
    begin_.notify_all();
    return true;
  }
  /// Returns when they have ended. Threads that have not begun by now would find nothing to do.
  void end() {
    std::unique_lock lock(mutex_);
    wanted_ = 0;
    end_.wait(lock, [&] { return running_ == 0; });
    busy_.clear();
  }

 private:
  void sleep(uint32_t number) {
    uint64_t seen = 0;
    std::unique_lock lock(mutex_);
    for (;;) {
      begin_.wait(lock, [&] { return generation_ != seen && number < wanted_; });
      seen = generation_;
      const std::function<void()>& work = *work_;
      ++running_;
      lock.unlock();
      work();
      lock.lock();
      if (--running_ == 0) end_.notify_all();
    }
  }

  std::atomic_flag busy_;
  std::mutex mutex_;
  std::condition_variable begin_, end_;
  const std::function<void()>* work_ = nullptr;
  uint32_t threads_ = 0, wanted_ = 0, running_ = 0;
  uint64_t generation_ = 0;
};

}  // namespace

uint32_t Cluster::choose(uint32_t bound) {
  if (grid->seed == 0 || bound <= 1) return 0;
  random = mixed(random);
  return static_cast<uint32_t>((random >> 32) * bound >> 32);
}

bool Cluster::random_order() const { return grid->seed != 0; }

void run(const Launch& launch, Touched* touched, Touched* early) {
  if (timing::report_again(launch)) return;
  Run run(launch, touched, early);
  const uint32_t workers = static_cast<uint32_t>(run.most_workers());
  if (workers <= 1) {
    run.work();
  } else {
    const std::function<void()> work = [&run] { run.work(); };
    bool helped = false;
    Help help([&] { helped = Helpers::get().begin(workers - 1, work); });
    run.work(&help);
    if (helped) Helpers::get().end();
  }
  if (counts()) count_launch(*launch.kernel, run.count());
  run.report_time();
  run.rethrow();
  run.report_no_wait();
  run.run_launches();
}

}  // namespace emulator::ptx
