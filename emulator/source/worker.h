// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <boost/context/detail/fcontext.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "emulator/machine/fault.h"
#include "emulator/source/copy_queue.h"
#include "emulator/source/kernel_api.h"
#include "emulator/source/runtime_api.h"
#include "emulator/source/stacks.h"

namespace emulator {
class LaunchClock;
}

namespace emulator::source {

class Checker;
class Cluster;
struct ClusterBarrier;
struct HopperBlock;
using api::dim3, api::uint3;

inline constexpr int kMaxThreads = 1024;
inline constexpr int kLanes = 32;
inline constexpr int kMaxWarps = kMaxThreads / kLanes;
/// The limit of a block on the largest of our GPUs (sm_90: 227 KiB).
inline constexpr size_t kMaxDynamicShared = 227 << 10;
inline constexpr size_t kDefaultDynamicShared = 48 << 10;

/// A CUDA thread that waits: its fiber's context, and the reason.
struct Thread {
  boost::context::detail::fcontext_t context;
  const char* waits_in;
  SourceLine where;
  uint32_t mask;
  uint3 index;
  const void* on;  ///< the argument of block()
};

/// A collective that some lanes of a warp have reached and others have not.
struct Meeting {
  uint32_t mask, arrived;
  const CollectiveOp* op;
  int line;
};

/// 32 threads; every field is a set of lanes.
struct Warp {
  uint32_t members, unstarted, ready, exited, in_collective, at_barrier, blocked;
  int meetings_count;
  Meeting meetings[kLanes];
  void* frames[kLanes];
};

/// Runs blocks, one at a time, on one OS thread. A CUDA thread starts on the stack of the one before it, if that one
/// has finished; a thread that waits keeps its stack, and the next one starts on another. There is no scheduler fiber:
/// a waiting thread jumps straight to the next runnable one.
class Worker {
 public:
  Worker();
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// The worker of this OS thread, made on first use.
  static Worker& mine();
  /// The worker whose kernel code this OS thread is running, or nullptr.
  static Worker* running();

  /// Runs one block. Returns false when it failed: error() says why, and the block's fibers are abandoned.
  bool run_block(const Launch& launch, LaunchClock* clock, uint64_t block, uint64_t seed);
  /// As run_block, as one block of a cluster, whose other blocks run on other OS threads.
  bool run_member(Cluster& cluster, int rank, const Launch& launch, LaunchClock* clock, uint64_t block, uint64_t seed);
  const std::string& error() const { return error_; }
  /// Whether the block ended only because another one of its cluster failed.
  bool abandoned() const { return abandoned_; }

  void collective(const CollectiveOp& op, uint32_t mask, void* frame, SourceLine where);
  int barrier(BarrierKind kind, int predicate, SourceLine where);
  void yield_when_seeded();
  /// As yield_when_seeded(), at every eighth call or so.
  void yield_sometimes() {
    if (seeded_ && random() % 8 == 0) yield_when_seeded();
  }
  /// Stops the block from inside a fiber; `text`'s result is put after "block (…), thread (…): ". The fiber is
  /// abandoned with all that its frames hold, so the text is made by a function: no part of it is alive by then. For
  /// the same reason callers hold no memory of their own. Call as `report().fail([&] { return cat(…); })`.
  template <class Text>
  [[noreturn]] void fail(const Text& text) {
    fail_for(current_, text);
  }
  template <class Text>
  [[noreturn]] void fail_for(int thread, const Text& text) {
    set_error(thread, text());
    stop();
  }
  /// From here on accesses are not checked: the program's one std::string::append may be the copy that was compiled
  /// with the kernels.
  Worker& report() {
    reporting_ = true;
    return *this;
  }
  bool reporting() const { return reporting_; }

  // Instructions of Hopper (hopper_worker.cpp).
  /// The block's state for them, made on first use.
  HopperBlock& hopper() {
    if (!hopper_used_) begin_hopper();
    return *hopper_;
  }
  /// Parks the calling thread until wake(thread); `on` names the reason.
  void block(const char* waits_in, const void* on, SourceLine where);
  void wake(int thread) {
    Warp& warp = warps_[thread / kLanes];
    const uint32_t bit = 1u << thread % kLanes;
    if (!(warp.blocked & bit)) return;
    warp.blocked &= ~bit;
    make_ready(thread / kLanes, bit);
  }
  /// True once in `n` calls in a random order, never in the fixed one.
  bool chance(unsigned n) { return seeded_ && random() % n == 0; }
  int threads_count() const { return threads_count_; }
  int exited_count() const { return exited_; }
  bool can_run() const { return (warps_ready_ | warps_unstarted_) != 0; }
  bool has_loads() const;
  /// The lane that elect_one chooses: the same one throughout a block, 0 in the fixed order.
  int elected_lane() const { return seeded_ ? static_cast<int>(block_seed_ % kLanes) : 0; }
  int rank() const { return rank_; }
  int cluster_size() const;
  /// Of the running block's cluster in the grid; without clusters, of the block.
  uint64_t cluster_number() const;
  int cluster_threads_left() const;
  ClusterBarrier& cluster_barrier();
  /// Block `rank` of the cluster.
  Worker& member(int rank);
  /// As member, for an access to its shared memory: ends the kernel when the block has not begun or has ended.
  Worker& peer(int rank, const char* what, SourceLine where);
  Worker& peer_of_load(int rank, int thread, SourceLine where);
  /// This block's shared `pointer` mapped to the shared memory of another block.
  void* map_to(const Worker& owner, const void* pointer) const;
  /// Ends the kernel unless [address, address + bytes) is shared memory of this block, aligned to `bytes`.
  void check_shared(const char* what, const void* address, size_t bytes, SourceLine where);
  /// True when the 16 bytes at this offset, as matrix descriptors count, are the block's.
  bool is_operand(uintptr_t offset) const;
  std::string describe_operand(uintptr_t offset) const;
  std::string describe_shared(const void* address) const;
  /// `byte 16 of the dynamic shared memory of block 1 of the cluster, …`; empty for other addresses.
  std::string describe_cluster_memory(uintptr_t address) const;
  /// `byte 16 of dynamic shared memory of block 1 of the cluster`; empty for what is not another block's.
  std::string describe_peer(uintptr_t address) const;
  [[noreturn]] void abandon();
  Checker* checker() const { return checker_; }
  void set_checker(Checker* checker) { checker_ = checker; }

  char* dynamic_shared() const { return shared_; }
  size_t dynamic_shared_bytes() const { return launch_->dynamic_shared; }
  bool in_dynamic_shared_arena(uintptr_t address) const {
    return address - reinterpret_cast<uintptr_t>(arena_) < kArenaBytes;
  }
  uintptr_t dynamic_shared_arena() const { return reinterpret_cast<uintptr_t>(arena_); }
  static constexpr size_t dynamic_shared_arena_bytes() { return kArenaBytes; }
  /// True inside the block's dynamic shared memory, or the thread-local storage, which holds the static one.
  bool is_shared(uintptr_t address, size_t bytes) const {
    return (address >= reinterpret_cast<uintptr_t>(shared_) &&
            address + bytes <= reinterpret_cast<uintptr_t>(shared_) + launch_->dynamic_shared) ||
           (address >= static_shared_.begin && address + bytes <= static_shared_.end);
  }
  /// The thread-local storage of the program, on this worker's OS thread.
  struct Range {
    uintptr_t begin, end;
  };
  const Range& static_shared() const { return static_shared_; }
  const Launch& launch() const { return *launch_; }
  const Stacks& stacks() const { return stacks_; }
  int current() const { return current_; }
  int lane() const { return current_ % kLanes; }
  CopyQueue& copy_queue();
  /// `block (0,0,0), thread (3,0,0)`: of the running block, or of another one of the grid.
  std::string place(int thread) const;
  std::string place(uint64_t block, int thread) const;
  std::string place_of_block(uint64_t block) const;

  /// Where the signal handler sends a fiber that faulted: a stack of its own, then fail().
  char* fault_stack() { return fault_stack_; }
  static constexpr size_t fault_stack_bytes() { return kFaultStackBytes; }

 private:
  static constexpr size_t kArenaBytes = 256 << 10;
  static constexpr size_t kFaultStackBytes = 256 << 10;

  static void carrier(boost::context::detail::transfer_t from);
  void run_thread(int thread);
  void exit_thread();
  void begin_hopper();
  void prepare(const Launch& launch, LaunchClock* clock, uint64_t block, uint64_t seed);
  bool run_prepared();
  /// No thread of the block can run: lets others of the cluster run, or lets a copy arrive. False when nothing is left.
  bool make_progress();
  /// In a random order, now and then: actions that the hardware may take at any time.
  void act_at_random();
  void protect_arena(bool usable);
  bool choose(int& thread, bool& fresh);
  bool choose_random(int& thread, bool& fresh);
  void park(const char* waits_in, SourceLine where, uint32_t mask);
  void enter(int thread);
  void set_error(int thread, const std::string& text) { error_ = cat(place(thread), ": ", text); }
  [[noreturn]] void stop();
  [[noreturn]] void deadlock();
  void make_ready(int warp, uint32_t lanes) {
    warps_[warp].ready |= lanes;
    warps_ready_ |= 1u << warp;
  }
  uint64_t random();
  uint3 block_index(uint64_t block) const;
  uint3 thread_index(int thread) const;
  std::string describe_threads() const;
  std::string describe_blocked(const Thread& thread) const;
  /// The threads of the other blocks of the cluster.
  std::string describe_peers() const;

  // The block that runs.
  const Launch* launch_ = nullptr;
  uint64_t block_ = 0;
  int threads_count_ = 0;
  int current_ = 0;
  int next_start_ = 0;
  int next_stack_ = 0;
  int exited_ = 0;
  int at_barrier_ = 0;
  BarrierKind barrier_kind_ = BarrierKind::sync;
  SourceLine barrier_line_{};
  int barrier_sum_ = 0;
  int barrier_result_ = 0;
  uint32_t warps_ready_ = 0;
  uint32_t warps_unstarted_ = 0;
  uint64_t random_state_ = 0;
  bool seeded_ = false;
  bool copies_used_ = false;
  bool hopper_used_ = false;
  bool abandoned_ = false;
  uint64_t block_seed_ = 0;
  Cluster* cluster_ = nullptr;
  int rank_ = 0;
  Checker* checker_ = nullptr;
  std::string error_;
  bool reporting_ = false;
  boost::context::detail::fcontext_t main_context_ = nullptr;

  Thread threads_[kMaxThreads];
  Warp warps_[kMaxWarps];
  Stacks stacks_;
  std::vector<CopyQueue> copy_queues_;
  std::unique_ptr<HopperBlock> hopper_;
  char* arena_;
  char* shared_ = nullptr;
  char* fault_stack_;
  char* signal_stack_;
  Range static_shared_;
};

/// The block that is number `rank` of cluster number `cluster`.
uint64_t block_of(const Launch& launch, uint64_t cluster, uint64_t rank);

/// Runs the whole grid on the pool of workers; throws the error of a failed block.
void run_grid(const Launch& launch);

}  // namespace emulator::source
