// SPDX-License-Identifier: Apache-2.0
#include "emulator/source/worker.h"

#include <link.h>
#include <sys/mman.h>

#include <atomic>
#include <bit>
#include <cstring>
#include <memory>

#include "emulator/machine/fault.h"
#include "emulator/source/check.h"
#include "emulator/source/cluster.h"
#include "emulator/source/fault.h"
#include "emulator/source/hopper_block.h"
#include "emulator/source/pages.h"
#include "emulator/source/report.h"
#include "emulator/source/switch_fiber.h"
#include "emulator/source/warp.h"

using boost::context::detail::make_fcontext;

// threadIdx, blockIdx, blockDim and gridDim of kernels.
extern "C" {
__thread emulator::source::api::uint3 weft_simt_thread_index;
__thread emulator::source::api::uint3 weft_simt_block_index;
__thread emulator::source::api::uint3 weft_simt_block_size;
__thread emulator::source::api::uint3 weft_simt_grid_size;
}

namespace emulator::source {

namespace {

__thread Worker* running_worker = nullptr;

/// The target of a jump saves the caller's context.
void store_origin(transfer_t from) {
  if (from.data) *static_cast<fcontext_t*>(from.data) = from.fctx;
}

constexpr const char* kBarrierNames[] = {"__syncthreads", "__syncthreads_count", "__syncthreads_and",
                                         "__syncthreads_or"};

int nth_set_bit(uint32_t bits, int n) {
  for (; n > 0; --n) bits &= bits - 1;
  return std::countr_zero(bits);
}

char* map_memory(size_t bytes, size_t guard) {
  void* memory =
      mmap(nullptr, bytes + guard, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    throw Fault(FaultCode::launch_failure, "simt: no address space for a worker. Is ulimit -v set?");
  if (guard) mprotect(static_cast<char*>(memory) + bytes, guard, PROT_NONE);
  return static_cast<char*>(memory);
}

/// The program is the first object that the loader lists.
int program_tls(dl_phdr_info* info, size_t, void* found) {
  auto& range = *static_cast<Worker::Range*>(found);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type != PT_TLS) continue;
    range.begin = reinterpret_cast<uintptr_t>(info->dlpi_tls_data);
    range.end = range.begin + info->dlpi_phdr[i].p_memsz;
  }
  return 1;
}

}  // namespace

Worker::Worker()
    : stacks_(kMaxThreads + 1),
      arena_(map_memory(kArenaBytes, page_bytes())),
      fault_stack_(map_memory(kFaultStackBytes, 0) + kFaultStackBytes),
      signal_stack_(install_fault_handler()),
      static_shared_{} {
  dl_iterate_phdr(&program_tls, &static_shared_);
}

Worker::~Worker() {
  remove_signal_stack(signal_stack_);
  // Carriers left their frames on them; the next memory at these addresses may be a device's.
  forget_frames(stacks_.begin(), stacks_.made_bytes());
  forget_frames(fault_stack_ - kFaultStackBytes, kFaultStackBytes);
  munmap(arena_, kArenaBytes + page_bytes());
  munmap(fault_stack_ - kFaultStackBytes, kFaultStackBytes);
}

Worker& Worker::mine() {
  thread_local std::unique_ptr<Worker> worker;
  if (!worker) worker = std::make_unique<Worker>();
  return *worker;
}

Worker* Worker::running() { return running_worker; }

uint64_t Worker::random() {  // splitmix64
  uint64_t z = random_state_ += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

uint3 Worker::thread_index(int thread) const {
  const unsigned t = static_cast<unsigned>(thread);
  const dim3 size = launch_->block;
  return {t % size.x, t / size.x % size.y, t / (size.x * size.y)};
}

uint3 Worker::block_index(uint64_t block) const {
  const dim3 grid = launch_->grid;
  return {static_cast<unsigned>(block % grid.x), static_cast<unsigned>(block / grid.x % grid.y),
          static_cast<unsigned>(block / grid.x / grid.y)};
}

bool Worker::run_block(const Launch& launch, LaunchClock* clock, uint64_t block, uint64_t seed) {
  cluster_ = nullptr;
  rank_ = 0;
  prepare(launch, clock, block, seed);
  return run_prepared();
}

void Worker::prepare(const Launch& launch, LaunchClock* clock, uint64_t block, uint64_t seed) {
  launch_ = &launch;
  block_ = block;
  threads_count_ = static_cast<int>(launch.block.x * launch.block.y * launch.block.z);
  exited_ = at_barrier_ = barrier_sum_ = 0;
  reporting_ = false;
  copies_used_ = hopper_used_ = abandoned_ = false;
  seeded_ = seed != 0;
  block_seed_ = random_state_ = seed + block * 0x9e3779b97f4a7c15u;
  error_.clear();
  const int warps = (threads_count_ + kLanes - 1) / kLanes;
  for (int w = 0; w < warps; ++w) {
    const int lanes = std::min(kLanes, threads_count_ - w * kLanes);
    Warp& warp = warps_[w];
    warp.members = warp.unstarted = lanes == kLanes ? ~0u : (1u << lanes) - 1;
    warp.ready = warp.exited = warp.in_collective = warp.at_barrier = warp.blocked = 0;
    warp.meetings_count = 0;
  }
  warps_ready_ = 0;
  warps_unstarted_ = warps == kMaxWarps ? ~0u : (1u << warps) - 1;
  weft_simt_block_size = launch.block;
  weft_simt_grid_size = launch.grid;
  weft_simt_block_index = block_index(block);
  // Aligned as on the device (1024), and as near as that allows to the guard page after the arena.
  shared_ = arena_ + kArenaBytes - (launch.dynamic_shared + 1023) / 1024 * 1024;
  if (launch.dynamic_shared) std::memset(shared_, 0xff, launch.dynamic_shared);
  check_block_begin(*this, clock);
}

bool Worker::run_prepared() {
  bool fresh;
  current_ = 0;
  choose(next_start_, fresh);
  current_ = -2;
  next_stack_ = stacks_.take();
  running_worker = this;
  store_origin(
      switch_fiber(stacks_, make_fcontext(stacks_.top(next_stack_), Stacks::kBytes - 4096, &carrier), &main_context_));
  running_worker = nullptr;
  if (!error_.empty()) {
    forget_frames(stacks_.begin(), stacks_.made_bytes());
    forget_frames(fault_stack_ - kFaultStackBytes, kFaultStackBytes);
  }
  check_block_end(*this, error_);
  stacks_.give_back_all();
  return error_.empty();
}

/// The body of a fiber: starts threads, one after the other, until none is left to start.
void Worker::carrier(transfer_t from) {
  Worker& worker = *running_worker;
  entered_fiber(worker.stacks_);
  store_origin(from);
  const int stack = worker.next_stack_;
  for (;;) {
    worker.run_thread(worker.next_start_);
    worker.exit_thread();
    int next;
    bool fresh;
    while (!worker.choose(next, fresh)) [[unlikely]] {
        if (worker.exited_ == worker.threads_count_) {
          if (worker.hopper_used_) finish_hopper_block(worker);
          worker.stop();
        }
        if (!worker.make_progress()) worker.deadlock();
      }
    if (fresh) {
      worker.next_start_ = next;
      continue;
    }
    worker.stacks_.give_back(stack);  // no thread can take it before the jump is done
    worker.enter(next);
    switch_fiber(worker.stacks_, worker.threads_[next].context, nullptr, Leaves::for_good);
  }
}

void Worker::run_thread(int thread) {
  if (thread == current_ + 1) {  // the usual case, without a division
    uint3& index = weft_simt_thread_index;
    if (++index.x == launch_->block.x) {
      index.x = 0;
      if (++index.y == launch_->block.y) index.y = 0, ++index.z;
    }
  } else {
    weft_simt_thread_index = thread_index(thread);
  }
  current_ = thread;
  warps_[thread / kLanes].unstarted &= ~(1u << thread % kLanes);
  if (!warps_[thread / kLanes].unstarted) warps_unstarted_ &= ~(1u << thread / kLanes);
  std::string thrown;
  try {
    launch_->invoke(launch_->arguments);
    return;
  } catch (const std::exception& e) {
    report();
    thrown = e.what();
  } catch (...) {
    report();
    thrown = "an exception that is not a std::exception";
  }
  report().fail([&] {
    const std::string what = std::move(thrown);
    return cat("the kernel threw: ", what);
  });
}

void Worker::exit_thread() {
  if (copies_used_ && copy_queues_[static_cast<size_t>(current_)].outstanding()) {
    const CopyQueue& queue = copy_queues_[static_cast<size_t>(current_)];
    report().fail([&] {
      return cat("exits with ", queue.outstanding(), " cp.async copies that it never waited for, the first issued at ",
                 queue.oldest().where);
    });
  }
  if (hopper_used_) check_hopper_exit(*this);
  Warp& warp = warps_[current_ / kLanes];
  warp.exited |= 1u << lane();
  ++exited_;
  if (hopper_used_ || cluster_) cluster_thread_exited(*this);
  if (at_barrier_)
    report().fail([&] {
      return cat("exits while ", at_barrier_, " of ", threads_count_, " threads wait in ",
                 kBarrierNames[static_cast<int>(barrier_kind_)], " at ", barrier_line_,
                 ". Every thread of the block must reach the barrier.\n", describe_threads());
    });
  for (int i = 0; i < warp.meetings_count; ++i) {
    const Meeting& meeting = warp.meetings[i];
    if (meeting.mask & warp.exited)
      report().fail([&] {
        return cat("exits while lanes ", lanes_text(meeting.arrived), " of its warp wait for it in ", meeting.op->name,
                   ", mask ", hex(meeting.mask), ".\n", describe_threads());
      });
  }
}

bool Worker::choose(int& thread, bool& fresh) {
  if (seeded_) return choose_random(thread, fresh);
  int w = current_ / kLanes;
  if (!(warps_[w].ready | warps_[w].unstarted)) {
    if (warps_ready_)
      w = std::countr_zero(warps_ready_);
    else if (warps_unstarted_)
      w = std::countr_zero(warps_unstarted_);
    else
      return false;
  }
  fresh = !warps_[w].ready;
  thread = w * kLanes + std::countr_zero(fresh ? warps_[w].unstarted : warps_[w].ready);
  return true;
}

bool Worker::choose_random(int& thread, bool& fresh) {
  const uint32_t warps = warps_ready_ | warps_unstarted_;
  if (!warps) return false;
  const uint64_t bits = random();
  const int w = nth_set_bit(warps, static_cast<int>((bits & 0xffff) % static_cast<unsigned>(std::popcount(warps))));
  const uint32_t lanes = warps_[w].ready | warps_[w].unstarted;
  const int lane = nth_set_bit(lanes, static_cast<int>((bits >> 32) % static_cast<unsigned>(std::popcount(lanes))));
  fresh = (warps_[w].unstarted >> lane) & 1u;
  thread = w * kLanes + lane;
  return true;
}

/// Makes a waiting thread the current one; the caller jumps to it.
inline void Worker::enter(int thread) {
  Warp& warp = warps_[thread / kLanes];
  warp.ready &= ~(1u << thread % kLanes);
  if (!warp.ready) warps_ready_ &= ~(1u << thread / kLanes);
  current_ = thread;
  weft_simt_thread_index = threads_[thread].index;
}

/// Leaves the current thread and returns when another thread has made it ready and jumped back.
void Worker::park(const char* waits_in, SourceLine where, uint32_t mask) {
  Thread& self = threads_[current_];
  self.waits_in = waits_in;
  self.where = where;
  self.mask = mask;
  self.index = weft_simt_thread_index;
  int next;
  bool fresh;
  if (seeded_ && (hopper_used_ || cluster_)) act_at_random();
  while (!choose(next, fresh)) [[unlikely]] if (!make_progress()) deadlock();
  fcontext_t target;
  if (fresh) {
    next_start_ = next;
    next_stack_ = stacks_.take();
    target = make_fcontext(stacks_.top(next_stack_), Stacks::kBytes - 4096, &carrier);
  } else {
    enter(next);
    target = threads_[next].context;
    if (&threads_[next] == &self) return;
  }
  store_origin(switch_fiber(stacks_, target, &self.context));
}

void Worker::collective(const CollectiveOp& op, uint32_t mask, void* frame, SourceLine where) {
  const int w = current_ / kLanes;
  Warp& warp = warps_[w];
  const uint32_t bit = 1u << lane();
  if (!(mask & bit)) [[unlikely]]
    report().fail(
        [&] { return cat(op.name, " at ", where, ": mask ", hex(mask), " does not name the calling lane ", lane()); });
  if (mask & (warp.exited | ~warp.members)) [[unlikely]] {
    const uint32_t absent = mask & ~warp.members;
    report().fail([&] {
      return cat(op.name, " at ", where, ": mask ", hex(mask), " names lanes ",
                 lanes_text(absent ? absent : mask & warp.exited),
                 absent ? ", which this block does not have" : ", which have exited");
    });
  }
  Meeting* meeting = warp.meetings;
  Meeting* const end = meeting + warp.meetings_count;
  while (meeting != end && meeting->mask != mask) ++meeting;
  if (meeting == end) {
    *meeting = {mask, 0, &op, where.line};
    ++warp.meetings_count;
  } else if (meeting->op != &op || meeting->line != where.line) [[unlikely]] {
    report().fail([&] {
      return cat("divergent collective: it calls ", op.name, " at ", where, " while lanes ",
                 lanes_text(meeting->arrived), " of its warp wait in ", meeting->op->name, " at line ", meeting->line,
                 ", both with mask ", hex(mask));
    });
  }
  warp.frames[lane()] = frame;
  meeting->arrived |= bit;
  if (meeting->arrived != mask) {
    warp.in_collective |= bit;
    park(op.name, where, mask);
    return;
  }
  *meeting = warp.meetings[--warp.meetings_count];
  op.apply(warp.frames, mask);
  if (op.orders_memory) check_sync_warp(w, mask, warp.members);
  const uint32_t others = mask & ~bit;
  warp.in_collective &= ~others;
  if (others) make_ready(w, others);
}

int Worker::barrier(BarrierKind kind, int predicate, SourceLine where) {
  const char* name = kBarrierNames[static_cast<int>(kind)];
  if (exited_) [[unlikely]]
    report().fail([&] {
      return cat("divergent barrier: it waits in ", name, " at ", where, ", but ", exited_, " of ", threads_count_,
                 " threads of the block have exited. Every thread must reach the barrier.\n", describe_threads());
    });
  if (at_barrier_ && (kind != barrier_kind_ || where.line != barrier_line_.line)) [[unlikely]]
    report().fail([&] {
      return cat("divergent barrier: it waits in ", name, " at ", where, ", but ", at_barrier_,
                 " other threads wait in ", kBarrierNames[static_cast<int>(barrier_kind_)], " at ", barrier_line_,
                 ".\n", describe_threads());
    });
  barrier_kind_ = kind;
  barrier_line_ = where;
  barrier_sum_ += predicate != 0;
  Warp& own = warps_[current_ / kLanes];
  if (++at_barrier_ < threads_count_) {
    own.at_barrier |= 1u << lane();
    park(name, where, 0);
    return barrier_result_;
  }
  barrier_result_ = kind == BarrierKind::all   ? barrier_sum_ == threads_count_
                    : kind == BarrierKind::any ? barrier_sum_ != 0
                                               : barrier_sum_;
  check_barrier();
  at_barrier_ = barrier_sum_ = 0;
  own.at_barrier &= ~(1u << lane());
  const int warps = (threads_count_ + kLanes - 1) / kLanes;
  for (int w = 0; w < warps; ++w) {
    if (warps_[w].at_barrier) make_ready(w, warps_[w].at_barrier);
    warps_[w].at_barrier = 0;
  }
  return barrier_result_;
}

void Worker::yield_when_seeded() {
  if (!seeded_) return;
  make_ready(current_ / kLanes, 1u << lane());
  park("an atomic", {"", 0}, 0);
}

CopyQueue& Worker::copy_queue() {
  if (!copies_used_) {
    if (copy_queues_.size() < static_cast<size_t>(threads_count_))
      copy_queues_.resize(static_cast<size_t>(threads_count_));
    for (int t = 0; t < threads_count_; ++t) copy_queues_[static_cast<size_t>(t)].reset();
    copies_used_ = true;
  }
  return copy_queues_[static_cast<size_t>(current_)];
}

std::string Worker::place(int thread) const { return place(block_, thread); }

std::string Worker::place(uint64_t block, int thread) const {
  const uint3 b = block_index(block), t = thread_index(thread);
  return cat("block (", b.x, ",", b.y, ",", b.z, "), thread (", t.x, ",", t.y, ",", t.z, ")");
}

void Worker::stop() {
  switch_fiber(stacks_, main_context_, nullptr, Leaves::for_good);
  __builtin_unreachable();
}

void Worker::deadlock() {
  reporting_ = true;
  const uint3 b = weft_simt_block_index;
  error_ = cat("block (", b.x, ",", b.y, ",", b.z, "): deadlock: no thread can run.\n", describe_threads(),
               describe_peers());
  stop();
}

std::string Worker::describe_threads() const {
  std::string text;
  std::string previous;
  int begin = 0;
  for (int t = 0; t <= threads_count_; ++t) {
    std::string state;
    if (t < threads_count_) {
      const Warp& warp = warps_[t / kLanes];
      const uint32_t bit = 1u << t % kLanes;
      const Thread& thread = threads_[t];
      if (warp.exited & bit)
        state = "exited";
      else if (warp.unstarted & bit)
        state = "not started";
      else if (warp.in_collective & bit)
        state = cat("wait in ", thread.waits_in, ", mask ", hex(thread.mask), ", at ", thread.where);
      else if (warp.at_barrier & bit)
        state = cat("wait in ", thread.waits_in, " at ", thread.where);
      else if (warp.blocked & bit)
        state = describe_blocked(thread);
      else
        state = t == current_ ? "running" : "runnable";
    }
    if (t > 0 && state != previous) {
      text += begin == t - 1 ? cat("  thread ", begin) : cat("  threads ", begin, "-", t - 1);
      text += cat(": ", previous, "\n");
      begin = t;
    }
    previous = state;
  }
  if (!text.empty()) text.pop_back();
  return text;
}

// Called by kernel code.

namespace {
Worker& in_kernel() { return *running_worker; }
}  // namespace

void collective(const CollectiveOp& op, uint32_t mask, void* frame, SourceLine where) {
  in_kernel().collective(op, mask, frame, where);
}
int barrier(BarrierKind kind, int predicate, SourceLine where) { return in_kernel().barrier(kind, predicate, where); }
void yield_when_seeded() { in_kernel().yield_when_seeded(); }
void fail_kernel(const char* text, SourceLine where) {
  in_kernel().report().fail([&] { return cat(text, " at ", where); });
}
void memory_fence(bool own_block_only) {
  // Threads of a block share one processor; blocks on other processors need the host's fence.
  if (!own_block_only) std::atomic_thread_fence(std::memory_order_seq_cst);
  check_fence(own_block_only);
}
void* dynamic_shared() { return in_kernel().dynamic_shared(); }

}  // namespace emulator::source
