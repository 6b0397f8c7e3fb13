// SPDX-License-Identifier: Apache-2.0
// Asynchronous work: cp.async, copies by TMA, wgmma.
#include "emulator/machine/fresh.h"
#include "emulator/ptx/check/checker.h"

namespace emulator::ptx {

namespace {
int thread_of(const Warp& w, int lane) { return static_cast<int>(w.first_thread) + lane; }
}  // namespace

void BlockChecks::copy_issued(Warp& w, int lane, const Copy& copy) {
  BlockRaces::copy_issued(thread_of(w, lane), copy);
}
void BlockChecks::copy_done(Warp& w, int lane, const Copy& copy, const SharedPlace* mbarrier) {
  if (mbarrier)
    BlockRaces::copy_done(thread_of(w, lane), copy, *mbarrier->block->checks, mbarrier->at);
  else
    BlockRaces::copy_done(thread_of(w, lane), copy);
}
void BlockChecks::copies_told(const SharedPlace& mbarrier) {
  BlockRaces::copies_told(*mbarrier.block->checks, mbarrier.at);
}

void BlockChecks::load_issued(const Issuer& by, std::span<const Run> runs, uint32_t mbarrier) {
  by.w.block->checks->BlockRaces::load_issued(by, runs, *this, mbarrier);
}
void BlockChecks::load_done(const Issuer& by, std::span<const Run> runs, uint32_t mbarrier) {
  BlockRaces::load_done(by.at, runs, mbarrier);
}

/// Unwritten shared memory.
void BlockChecks::fresh_read(const Issuer& by, std::span<const Run> runs) {
  if (!launch_.fresh) return;
  for (const Run& run : runs)
    if (any_fresh(run.memory, run.bytes)) {
      report_fresh(by.w, by.lane, by.at, run.memory, run.bytes, Space::shared);
      return;
    }
}

uint32_t BlockChecks::store_issued(const Issuer& by, std::span<const Run> runs) {
  fresh_read(by, runs);
  return BlockRaces::store_issued(by, runs);
}
void BlockChecks::stores_read(Warp& w, int lane, uint32_t before) {
  BlockRaces::stores_read(thread_of(w, lane), before);
}

void BlockChecks::global_access(const Issuer& by, const char* memory, uint64_t bytes, bool write, bool reduces) {
  if (launch_.fresh) {
    if ((!write || reduces) && any_fresh(memory, bytes))
      report_fresh(by.w, by.lane, by.at, memory, bytes, Space::global);
    if (write) mark_written(memory, bytes);
  }
  if (launch_.races) BlockRaces::global_access(by, memory, bytes, write, reduces);
}
void BlockChecks::global_written(const Issuer& by, const char* memory, uint64_t bytes) {
  BlockRaces::global_written(thread_of(by.w, by.lane), memory, bytes);
}

bool BlockChecks::wgmma_issued(Warp& w, size_t count) {
  return BlockRaces::wgmma_issued(static_cast<int>(w.first_thread), count);
}
void BlockChecks::wgmma_read(const Issuer& by, size_t count, std::span<const Run> rows_of_a, std::span<const Run> b) {
  fresh_read(by, rows_of_a);
  fresh_read(by, b);
  BlockRaces::wgmma_read(by, count, rows_of_a, b);
}
void BlockChecks::wgmma_waited(Warp& w, size_t pending) {
  BlockRaces::wgmma_waited(static_cast<int>(w.index), pending);
}

}  // namespace emulator::ptx
