// SPDX-License-Identifier: Apache-2.0
// The checked build: every access of a kernel is checked against the bounds of its memory, against the bytes
// written so far, and against the accesses that it may race with. These are the functions that the rest of the
// emulator and the instrumented kernels call; checker.h does the work.
#include "emulator/source/check.h"

#include <cstring>
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

uint32_t check_copy_issued(const void* destination, size_t bytes, const void* source, size_t source_bytes,
                           SourceLine where) {
  return running->copy_issued(reinterpret_cast<uintptr_t>(destination), bytes, reinterpret_cast<uintptr_t>(source),
                              source_bytes, site_of(where));
}
void check_copy_done(const void* destination, size_t bytes, const void* source, size_t source_bytes, SourceLine where,
                     uint32_t issued) {
  running->copy_done(reinterpret_cast<uintptr_t>(destination), bytes, reinterpret_cast<uintptr_t>(source), source_bytes,
                     site_of(where), issued);
}

void check_write(const void* address, size_t bytes, SourceLine where) {
  check_any<Access::write>(address, bytes, site_of(where));
}

bool atomic_begins(void* address, size_t bytes, SourceLine where) {
  if (!running) return false;
  const uintptr_t begin = reinterpret_cast<uintptr_t>(address);
  const int thread = running->worker().current();
  const bool shared = !in_device_range(begin);
  running->clock().atomic(begin, shared, thread);
  check_any<Access::atomic>(address, bytes, site_of(where));  // may end the kernel, so nothing is locked yet
  if (shared) return false;
  running->clock().atomic_begins(begin, thread);
  return true;
}
void atomic_ends() { running->clock().atomic_ends(); }

void check_fence(bool own_block_only) {
  if (running) running->clock().fence(running->worker().current(), own_block_only);
}

std::shared_ptr<LaunchClock> check_launch(uint64_t blocks) { return std::make_shared<LaunchClock>(blocks); }

void check_block_begin(Worker& worker, LaunchClock* launch, uint64_t block) {
  static thread_local std::unique_ptr<Checker> checker;
  if (!checker) checker = std::make_unique<Checker>(worker);
  checker->begin(*launch, block);
  worker.set_checker(checker.get());
  running = checker.get();
}
void check_block_end(Worker&, std::string& error) { std::exchange(running, nullptr)->end(error); }
void check_barrier() { running->barrier(); }
void check_sync_warp(int warp, uint32_t mask, uint32_t members) { running->clock().sync_warp(warp, mask, members); }

void check_allocated(void* data, size_t bytes, bool written) {
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

}  // namespace emulator::source
