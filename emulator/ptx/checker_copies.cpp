// SPDX-License-Identifier: Apache-2.0
// Asynchronous work: cp.async, copies by TMA, wgmma.
#include "emulator/machine/fresh.h"
#include "emulator/ptx/checker.h"

namespace emulator::ptx {

uint64_t BlockChecks::stamp_of(const Warp& w, int lane) {
  return clock_.now() | (w.first_thread + static_cast<uint32_t>(lane));
}
uint64_t BlockChecks::under_way(const Warp& w, int lane) const {
  return stamp::make(clock_.block(), stamp::kUnderWay) |
         static_cast<uint64_t>(stamp::kCopies + static_cast<int>(w.first_thread) + lane);
}

void BlockChecks::copy_issued(Warp& w, int lane, const Copy& copy) {
  const uint64_t mark = under_way(w, lane);
  // Other accesses to the destination were checked before.
  stamp_range(copy.to, copy.bytes, mark, copy.at);
  if (copy.given == 0) return;
  const Run from[] = {{copy.from, copy.given}};
  visit_runs<false>({w, lane, copy.at, "cp.async"}, mark, from, false);
}

void BlockChecks::copy_done(Warp& w, int lane, const Copy& copy, const SharedPlace* mbarrier) {
  uint64_t mark = stamp_of(w, lane);
  if (mbarrier)  // only threads that wait for that barrier know of it, as for a load by TMA
    mark = clock_.now() | static_cast<uint64_t>(proxy::load(mbarrier->block->checks->mbarrier_number(mbarrier->at)));
  stamp_range(copy.to, copy.bytes, mark, copy.at);
  if (copy.given != 0) restamp_range(copy.from, copy.given, under_way(w, lane), mark);
}

void BlockChecks::copies_told(const SharedPlace& mbarrier) {
  BlockChecks& owner = *mbarrier.block->checks;
  uint32_t& known =
      owner.mbarrier(mbarrier.at).arriving.at(views().rank, proxy::load(owner.mbarrier_number(mbarrier.at)));
  known = std::max(known, moment());
}

void BlockChecks::load_issued(const Issuer& by, std::span<const Run> runs, uint32_t mbarrier) {
  views();
  BlockChecks& asking = *by.w.block->checks;
  asking.views();
  const uint64_t mark =
      stamp::make(clock_.block(), stamp::kUnderWay) | static_cast<uint64_t>(proxy::load(mbarrier_number(mbarrier)));
  asking.visit_runs<true>(by, mark, runs, true);
}

void BlockChecks::load_done(const Issuer& by, std::span<const Run> runs, uint32_t mbarrier) {
  const int loads = proxy::load(mbarrier_number(mbarrier));
  Handover& barrier = this->mbarrier(mbarrier);
  for (const Run& run : runs) stamp_range(run.memory, run.bytes, clock_.now() | static_cast<uint64_t>(loads), by.at);
  barrier.arriving.at(views_.rank, loads) = moment();
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
  views();
  clock_.advance();
  const uint64_t mark = clock_.now() | static_cast<uint64_t>(proxy::store(static_cast<int>(by.w.index)));
  visit_runs<true>(by, mark, runs, false);
  return clock_.tick();
}

void BlockChecks::stores_read(Warp& w, int lane, uint32_t before) {
  views();
  uint32_t& known =
      clock_.view(static_cast<int>(w.first_thread) + lane).at(views_.rank, proxy::store(static_cast<int>(w.index)));
  known = std::max(known, before);
}

void BlockChecks::global_access(const Issuer& by, const char* memory, uint64_t bytes, bool write, bool reduces) {
  if (launch_.fresh) {
    if ((!write || reduces) && any_fresh(memory, bytes))
      report_fresh(by.w, by.lane, by.at, memory, bytes, Space::global);
    if (write) mark_written(memory, bytes);
  }
  if (!launch_.races) return;
  const Run run[] = {{memory, bytes}};
  uint64_t mark = stamp_of(by.w, by.lane);
  if (reduces)
    mark |= stamp::kStrong;
  else if (write)
    mark = under_way(by.w, by.lane);
  visit_runs<false>(by, mark, run, write);
}

void BlockChecks::global_written(const Issuer& by, const char* memory, uint64_t bytes) {
  clock_.global_writes(static_cast<int>(by.w.index), 1u << by.lane);
  restamp_range(memory, bytes, under_way(by.w, by.lane), stamp_of(by.w, by.lane));
}

bool BlockChecks::wgmma_issued(Warp& w, size_t count) {
  Warpgroup& group = warpgroups_[w.index / 4];
  if (count < group.first + group.wgmmas.size()) return false;
  views();
  clock_.advance();
  clock_.now();
  group.wgmmas.push_back({clock_.tick(), {}});
  constexpr size_t kMost = 4096;  // no reader lags that far
  if (group.wgmmas.size() > kMost) {
    group.wgmmas.pop_front();
    ++group.first;
  }
  return true;
}

/// The hardware's order, on which programs rely: each warp of a warpgroup reads its own rows of a when it issues the
/// wgmma, and all of b. The wgmma is one: all that it reads has the moment of its first issue, and is waited for at once.
void BlockChecks::wgmma_read(const Issuer& by, size_t count, std::span<const Run> rows_of_a, std::span<const Run> b) {
  fresh_read(by, rows_of_a);
  fresh_read(by, b);
  Warpgroup& group = warpgroups_[by.w.index / 4];
  if (count < group.first) return;
  Wgmma& wgmma = group.wgmmas[count - group.first];
  const uint64_t mark = stamp::make(clock_.block(), wgmma.tick) |
                        static_cast<uint64_t>(proxy::warpgroup(static_cast<int>(by.w.index) / 4));
  visit_runs<true>(by, mark, rows_of_a, false);
  if (!b.empty()) return visit_runs<true>(by, mark, b, false, &wgmma.b);
  // Those that come later read the same b, but each must know by itself that it is there.
  const int thread = static_cast<int>(by.w.first_thread) + by.lane;
  for (const Source& source : wgmma.b)
    if (!clock_.ordered<true>(source.written, thread, source.address))
      report(by.w, by.at, {source.written, source.at, by.lane}, true, by.what, source.address, source.bytes);
}

void BlockChecks::wgmma_waited(Warp& w, size_t pending) {
  views();
  const int group = static_cast<int>(w.index) / 4;
  Warpgroup& its = warpgroups_[static_cast<size_t>(group)];
  const uint32_t before =
      pending - its.first < its.wgmmas.size() ? its.wgmmas[pending - its.first].tick : moment();
  for (int lane = 0; lane < kLanes; ++lane) {
    uint32_t& known = clock_.view(static_cast<int>(w.first_thread) + lane).at(views_.rank, proxy::warpgroup(group));
    known = std::max(known, before);
  }
}

}  // namespace emulator::ptx
