// SPDX-License-Identifier: Apache-2.0
#include "emulator/source/mbarrier.h"

#include <cstring>

#include "emulator/machine/fault.h"
#include "emulator/source/check.h"
#include "emulator/source/hopper_block.h"
#include "emulator/source/report.h"
#include "emulator/source/worker.h"

namespace emulator::source {

namespace {

constexpr uint64_t kMark = 0x6d62617272ull << 24;
constexpr uint64_t kNumberMask = (1u << 24) - 1;

Mbarrier& barrier_at(Worker& owner, const void* address, const char* what, SourceLine where) {
  Mbarrier* const barrier = owner.hopper().barriers.find(address);
  if (!barrier)
    Worker::running()->report().fail([&] {
      return cat(what, " at ", where, ": there is no mbarrier at ", owner.describe_shared(address),
                 ": mbarrier_init has not run, or its 8 bytes were written over");
    });
  return *barrier;
}

}  // namespace

std::string Mbarrier::text() const {
  return cat("phase ", phases, " (parity ", phases & 1u, ") of the mbarrier made at ", made_at, ": ", pending, " of ",
             expected, " arrivals and ", bytes, " bytes are missing");
}

Mbarrier& Mbarriers::make(void* address, int arrivals, int thread, SourceLine where) {
  Mbarrier* barrier = find(address);
  if (!barrier) {
    if (used_ == all_.size()) all_.emplace_back();
    barrier = &all_[used_];
    barrier->number = static_cast<int>(used_++);
  }
  barrier->address = reinterpret_cast<uintptr_t>(address);
  barrier->expected = barrier->pending = arrivals;
  barrier->bytes = 0;
  barrier->phases = 0;
  barrier->made_by = thread;
  barrier->fenced = false;
  barrier->made_at = where;
  barrier->waiters.clear();
  const uint64_t word = kMark | static_cast<uint64_t>(barrier->number);
  std::memcpy(address, &word, sizeof(word));
  return *barrier;
}

Mbarrier* Mbarriers::find(const void* address) {
  uint64_t word;
  std::memcpy(&word, address, sizeof(word));
  const size_t number = word & kNumberMask;
  if ((word & ~kNumberMask) != kMark || number >= used_) return nullptr;
  Mbarrier& barrier = all_[number];
  return barrier.address == reinterpret_cast<uintptr_t>(address) ? &barrier : nullptr;
}

void mbarrier_init(void* address, int arrivals, SourceLine where) {
  Worker& worker = *Worker::running();
  worker.check_shared("mbarrier_init", address, 8, where);
  if (arrivals < 1 || arrivals > Mbarriers::kMostArrivals)
    worker.report().fail(
        [&] { return cat("mbarrier_init at ", where, ": ", arrivals, " arrivals, expected 1 to 2^20 - 1"); });
  check_write(address, 8, where);
  Mbarrier& barrier = worker.hopper().barriers.make(address, arrivals, worker.current(), where);
  check_mbarrier_made(barrier.number);
}

void mbarrier_init_fence(SourceLine) {
  Worker& worker = *Worker::running();
  worker.hopper().barriers.fence_all_of(worker.current());
}

void fence_proxy_async(SourceLine) {
  Worker& worker = *Worker::running();
  worker.hopper().barriers.fence_all_of(worker.current());
  check_proxy_fence();
}

/// Ends the phase when nothing is missing: wakes its waiters, and begins the next.
void settle(Worker& owner, Mbarrier& barrier) {
  if (barrier.pending != 0 || barrier.bytes != 0) return;
  ++barrier.phases;
  barrier.pending = barrier.expected;
  check_mbarrier_phase(owner, barrier.number);
  size_t kept = 0;
  for (const Mbarrier::Waiter& waiter : barrier.waiters)
    if (barrier.passes(waiter.parity))
      owner.wake(waiter.thread);
    else
      barrier.waiters[kept++] = waiter;
  barrier.waiters.resize(kept);
}

void mbarrier_complete_bytes(Worker& owner, void* address, int64_t bytes, int thread, SourceLine where) {
  Mbarrier* const barrier = owner.hopper().barriers.find(address);
  if (!barrier)
    Worker::running()->report().fail_for(thread, [&] {
      return cat("a load issued at ", where, " arrives, but its mbarrier at ", owner.describe_shared(address),
                 " was written over or made anew");
    });
  barrier->bytes -= bytes;
  if (barrier->bytes < -Mbarriers::kMostBytes)
    Worker::running()->report().fail_for(thread, [&] {
      return cat("a load issued at ", where, " brings more bytes than its mbarrier can count before they are expected");
    });
  settle(owner, *barrier);
}

Mbarrier& mbarrier_for_load(Worker& owner, void* address, const char* what, SourceLine where) {
  Mbarrier& barrier = barrier_at(owner, address, what, where);
  if (!barrier.fenced)
    Worker::running()->report().fail([&] {
      return cat(what, " at ", where, ": the mbarrier made at ", barrier.made_at,
                 " was not published by mbarrier_init_fence() in the thread that made it");
    });
  return barrier;
}

void mbarrier_arrive(void* address, int rank, int expected_bytes, SourceLine where) {
  Worker& worker = *Worker::running();
  const char* const what = rank >= 0             ? "mbarrier_arrive_cluster"
                           : expected_bytes != 0 ? "mbarrier_arrive_expect_tx"
                                                 : "mbarrier_arrive";
  worker.check_shared(what, address, 8, where);
  Worker& owner = rank < 0 ? worker : worker.peer(rank, what, where);
  void* const mapped = rank < 0 ? address : worker.map_to(owner, address);
  Mbarrier& barrier = rank < 0 ? barrier_at(owner, mapped, what, where) : mbarrier_for_load(owner, mapped, what, where);
  check_mbarrier_access(mapped, where);
  if (expected_bytes < 0 || barrier.bytes + expected_bytes > Mbarriers::kMostBytes)
    worker.report().fail([&] {
      return cat(what, " at ", where, ": ", barrier.bytes + expected_bytes, " bytes in one phase, at most 2^20 - 1");
    });
  barrier.bytes += expected_bytes;
  if (barrier.pending == 0)
    worker.report().fail([&] {
      return cat(what, " at ", where, ": more arrivals than the ", barrier.expected,
                 " that mbarrier_init expects: ", barrier.text());
    });
  check_mbarrier_release(owner, barrier.number);
  --barrier.pending;
  settle(owner, barrier);
  worker.yield_sometimes();
}

void mbarrier_wait(void* address, int parity, SourceLine where) {
  Worker& worker = *Worker::running();
  worker.check_shared("mbarrier_wait", address, 8, where);
  if (parity != 0 && parity != 1)
    worker.report().fail([&] { return cat("mbarrier_wait at ", where, ": parity ", parity, ", expected 0 or 1"); });
  worker.yield_sometimes();
  Mbarrier* barrier = &barrier_at(worker, address, "mbarrier_wait", where);
  check_mbarrier_access(address, where);
  if (!barrier->passes(parity)) {
    barrier->waiters.push_back({worker.current(), parity});
    worker.block(parity ? "mbarrier_wait for parity 1" : "mbarrier_wait for parity 0", address, where);
  }
  check_mbarrier_acquire(barrier->number);
}

}  // namespace emulator::source
