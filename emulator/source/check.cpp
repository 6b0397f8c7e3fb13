// SPDX-License-Identifier: Apache-2.0
// The checked build: every access of a kernel is checked against the bounds of its memory, against the bytes
// written so far, and against the accesses that it may race with. These are the functions that the rest of the
// emulator and the instrumented kernels call; checker.h does the work.
#include "emulator/source/check.h"

#include <cstring>
#include <mutex>
#include <utility>

#include "emulator/source/checker.h"
#include "emulator/source/instrument.h"
#include "emulator/source/simt.h"

namespace emulator::source {

namespace {

/// The checker of the block that this OS thread runs, or nullptr.
__thread Checker* running = nullptr;

template <Access kAccess, size_t kBytes>
inline void check(const void* address, size_t bytes, Site at) {
  if (Checker* checker = running) checker->access<kAccess, kBytes>(reinterpret_cast<uintptr_t>(address), bytes, at);
}

BlockRaces::Run run(const void* memory, size_t bytes) { return {static_cast<const char*>(memory), bytes}; }
Checker::Copy copy_of(const void* to, size_t bytes, const void* from, size_t given, SourceLine where) {
  return {static_cast<const char*>(to), static_cast<uint32_t>(bytes), static_cast<const char*>(from),
          static_cast<uint32_t>(given), site_of(where)};
}
Checker& of(Worker& worker) { return *worker.checker(); }
int current() { return running->worker().current(); }

/// For the accesses whose size is not known when this is compiled.
template <Access kAccess>
void check_any(const void* address, size_t bytes, Site at) {
  if (bytes) check<kAccess, 0>(address, bytes, at);
}

}  // namespace

bool access_checks() { return true; }

template <size_t kBytes>
void instrumented_read(const void* address, const void* instruction) {
  check<Access::read, kBytes>(address, kBytes, site_of(instruction));
}
template <size_t kBytes>
void instrumented_write(const void* address, const void* instruction) {
  check<Access::write, kBytes>(address, kBytes, site_of(instruction));
}
#define WEFT_INSTANTIATE(bytes)                                     \
  template void instrumented_read<bytes>(const void*, const void*); \
  template void instrumented_write<bytes>(const void*, const void*);
WEFT_INSTANTIATE(1)
WEFT_INSTANTIATE(2)
WEFT_INSTANTIATE(4)
WEFT_INSTANTIATE(8)
WEFT_INSTANTIATE(16)
#undef WEFT_INSTANTIATE
void instrumented_read_range(const void* address, size_t bytes, const void* instruction) {
  check_any<Access::read>(address, bytes, site_of(instruction));
}
void instrumented_write_range(const void* address, size_t bytes, const void* instruction) {
  check_any<Access::write>(address, bytes, site_of(instruction));
}

void check_read(const void* address, size_t bytes, SourceLine where) {
  check_any<Access::read>(address, bytes, site_of(where));
}

void check_copy_issued(const void* destination, size_t bytes, const void* source, size_t source_bytes,
                       SourceLine where) {
  running->copy_issued(copy_of(destination, bytes, source, source_bytes, where));
}
void check_copy_done(const void* destination, size_t bytes, const void* source, size_t source_bytes, SourceLine where) {
  running->copy_done(copy_of(destination, bytes, source, source_bytes, where));
}

void check_write(const void* address, size_t bytes, SourceLine where) {
  check_any<Access::write>(address, bytes, site_of(where));
}

void check_atomic(void* address, size_t bytes, SourceLine where) {
  if (running) running->atomic(reinterpret_cast<uintptr_t>(address), bytes, site_of(where));
}

void check_fence(bool own_block_only) {
  if (!running) return;
  const int thread = running->worker().current();
  running->clock().fence(thread / kLanes, 1u << thread % kLanes, own_block_only ? Reach::block : Reach::device);
}

std::shared_ptr<LaunchClock> check_launch(uint64_t blocks, uint64_t cluster) {
  struct Held {
    std::unique_lock<std::mutex> alone;
    LaunchClock clock;
  };
  static std::mutex& mutex = *new std::mutex;
  std::unique_lock alone(mutex);
  const auto held = std::make_shared<Held>(std::move(alone), LaunchClock(blocks, static_cast<uint32_t>(cluster)));
  return {held, &held->clock};
}

void check_block_begin(Worker& worker, LaunchClock* launch) {
  static thread_local std::unique_ptr<Checker> checker;
  if (!checker) checker = std::make_unique<Checker>(worker);
  worker.set_checker(checker.get());
  checker->begin(*launch);
  running = checker.get();
}
void check_block_end(Worker&, std::string& error) { std::exchange(running, nullptr)->end(error); }
void check_barrier() { running->barrier(); }
void check_sync_warp(int warp, uint32_t mask, uint32_t members) { running->clock().sync_warp(warp, mask, members); }

void check_allocated(void* data, size_t bytes, bool written) {
  Shadow::get().coarsen(reinterpret_cast<uintptr_t>(data), bytes);
  std::memset(device_written() + device_offset(reinterpret_cast<uintptr_t>(data)), written, bytes);
}

void check_copied(void* destination, const void* source, size_t bytes) {
  const uintptr_t to = reinterpret_cast<uintptr_t>(destination), from = reinterpret_cast<uintptr_t>(source);
  if (!in_device_range(to)) return;
  if (in_device_range(from))
    std::memmove(device_written() + device_offset(to), device_written() + device_offset(from), bytes);
  else
    check_filled(destination, bytes);
}

void check_filled(void* destination, size_t bytes) {
  const uintptr_t to = reinterpret_cast<uintptr_t>(destination);
  if (in_device_range(to)) std::memset(device_written() + device_offset(to), 1, bytes);
}

// Hopper.

bool access_checked() { return true; }

void check_mbarrier_made(int barrier) { running->mbarrier_made(static_cast<uint32_t>(barrier)); }
void check_mbarrier_access(const void* address, SourceLine where) {
  running->mbarrier_use(running->actor("use of an mbarrier", site_of(where)), static_cast<const char*>(address));
}
void check_mbarrier_release(Worker& owner, int barrier) {
  running->mbarrier_arrive(current(), of(owner), static_cast<uint32_t>(barrier), false);
}
void check_mbarrier_phase(Worker& owner, int barrier) { of(owner).mbarrier_phase(static_cast<uint32_t>(barrier)); }
void check_mbarrier_acquire(int barrier) { running->mbarrier_acquire(current(), static_cast<uint32_t>(barrier)); }

void check_proxy_fence() { running->proxy_fence(current()); }

void check_load_issued(Worker& owner, const void* shared, int bytes, int barrier, SourceLine where) {
  const BlockRaces::Run runs[] = {run(shared, static_cast<size_t>(bytes))};
  running->load_issued(running->actor("load by TMA", site_of(where)), runs, of(owner), static_cast<uint32_t>(barrier));
}
void check_load_done(Worker& owner, const void* shared, int bytes, int barrier, SourceLine where) {
  const BlockRaces::Run runs[] = {run(shared, static_cast<size_t>(bytes))};
  of(owner).load_done(site_of(where), runs, static_cast<uint32_t>(barrier));
}

uint32_t check_store_issued(const void* shared, int bytes, SourceLine where) {
  const BlockRaces::Run runs[] = {run(shared, static_cast<size_t>(bytes))};
  const Checker::Actor by = running->actor("store by TMA", site_of(where));
  running->proxy_reads(by, runs[0]);
  return running->store_issued(by, runs);
}
void check_stores_read(int thread, std::optional<uint32_t> before) {
  running->stores_read(thread, before ? *before : running->moment());
}
void check_store_written(const void* global, size_t bytes, int thread, SourceLine where) {
  running->global_write({thread, site_of(where), "store by TMA"}, run(global, bytes));
}

void check_wgmma_read(size_t number, const void* shared, SourceLine where) {
  const BlockRaces::Run runs[] = {run(shared, 16)};
  const Checker::Actor by = running->actor("wgmma", site_of(where));
  running->proxy_reads(by, runs[0]);
  running->wgmma_issued(by.thread, number);
  running->wgmma_read(by, number, runs, {});
}
void check_warpgroup_done(int warpgroup, size_t number) {
  for (int warp = warpgroup * 4; warp < warpgroup * 4 + 4; ++warp) running->wgmma_waited(warp, number);
}

void check_named_arrive(int id) { running->barrier_arrive(current(), static_cast<size_t>(id)); }
void check_named_complete(int id) { running->barrier_complete(static_cast<size_t>(id)); }
void check_named_acquire(int id) { running->barrier_acquire(current(), static_cast<size_t>(id)); }

void check_cluster_arrive() { running->cluster_arrive(current(), false); }
void check_cluster_barrier() { running->cluster_complete(); }
void check_cluster_acquire() { running->cluster_acquire(current()); }

}  // namespace emulator::source
