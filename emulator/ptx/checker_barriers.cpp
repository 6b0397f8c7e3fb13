// SPDX-License-Identifier: Apache-2.0
// What barriers that only some threads meet hand on, and what is under way: cp.async, TMA, wgmma.
#include <bit>

#include "emulator/machine/fresh.h"
#include "emulator/ptx/checker.h"

namespace emulator::ptx {

namespace {

/// Calls act(thread) for lanes of a warp.
template <class Act>
void for_each_thread(const Warp& w, uint32_t lanes, const Act& act) {
  for (; lanes != 0; lanes &= lanes - 1) act(static_cast<int>(w.first_thread) + std::countr_zero(lanes));
}

}  // namespace

/// Kept from the first instruction on that needs them.
Views& BlockChecks::views() {
  if (views_used_) return views_;
  views_used_ = true;
  const size_t blocks = block_.cluster->blocks.size();
  views_.rank = static_cast<int>(block_.rank);
  views_.first_block = clock_.block() - block_.rank;
  views_.blocks = static_cast<uint32_t>(blocks);
  views_.of_thread.resize(block_.threads);
  for (View& view : views_.of_thread) view.reset(blocks, block_.threads);
  clock_.use_views(&views_);
  return views_;
}

BlockChecks& BlockChecks::keeper() const { return *block_.cluster->blocks[0]->checks; }

Handover& BlockChecks::handover(Handover& one) {
  views();
  if (one.ended.empty()) one.reset(views_.blocks, block_.threads);
  return one;
}

void BlockChecks::barrier_arrive(Warp& w, uint32_t lanes, size_t id) {
  Handover& barrier = handover(named_[id]);
  for_each_thread(w, lanes, [&](int thread) { clock_.release(thread, barrier.arriving); });
}

void BlockChecks::barrier_complete(size_t id, bool whole) {
  if (whole) return clock_.barrier();
  Handover& barrier = handover(named_[id]);
  barrier.ended.learn(barrier.arriving);
}

void BlockChecks::barrier_acquire(Warp& w, uint32_t lanes, size_t id) {
  for_each_thread(w, lanes, [&](int thread) { clock_.acquire(thread, named_[id].ended); });
}

void BlockChecks::cluster_arrive(Warp& w, uint32_t lanes, bool relaxed) {
  views();
  Handover& barrier = keeper().handover(keeper().cluster_);
  for_each_thread(w, lanes, [&](int thread) {
    if (relaxed)
      clock_.release_fenced(thread, barrier.arriving);
    else
      clock_.release(thread, barrier.arriving);
  });
}

void BlockChecks::cluster_complete() {
  Handover& barrier = keeper().handover(keeper().cluster_);
  barrier.ended.learn(barrier.arriving);
}

void BlockChecks::cluster_acquire(Warp& w, uint32_t lanes) {
  views();
  const Handover& barrier = keeper().handover(keeper().cluster_);
  for_each_thread(w, lanes, [&](int thread) { clock_.acquire(thread, barrier.ended); });
}

/// The number of an mbarrier, in the order in which they are first seen.
int BlockChecks::mbarrier_number(uint32_t at) {
  const auto found = std::ranges::find(mbarrier_places_, at);
  const auto index = found - mbarrier_places_.begin();
  if (found == mbarrier_places_.end()) {
    mbarrier_places_.push_back(at);
    mbarriers_.emplace_back();
  }
  return static_cast<int>(index);
}
Handover& BlockChecks::mbarrier(uint32_t at) { return handover(mbarriers_[static_cast<size_t>(mbarrier_number(at))]); }

void BlockChecks::mbarrier_init(Warp& w, const Instruction* i, int lane, const char* place) {
  const Run word[] = {{place, 8}};
  visit_runs<true>({w, lane, site(i), "mbarrier.init"}, stamp_of(w, lane), word, true);
}

void BlockChecks::mbarrier_use(Warp& w, const Instruction* i, int lane, const char* place) {
  const Run word[] = {{place, 8}};
  visit_runs<true>({w, lane, site(i), "use of an mbarrier"}, stamp_of(w, lane) | stamp::kStrong, word, false);
}

void BlockChecks::mbarrier_arrive(Warp& w, int lane, const SharedPlace& place, bool relaxed) {
  views();
  View& arriving = place.block->checks->mbarrier(place.at).arriving;
  const int thread = static_cast<int>(w.first_thread) + lane;
  if (relaxed)
    clock_.release_fenced(thread, arriving);
  else
    clock_.release(thread, arriving);
}

void BlockChecks::mbarrier_phase(uint32_t at) {
  Handover& barrier = mbarrier(at);
  barrier.ended.learn(barrier.arriving);
}

void BlockChecks::mbarrier_acquire(Warp& w, int lane, uint32_t at) {
  Handover& barrier = mbarrier(at);
  clock_.acquire(static_cast<int>(w.first_thread) + lane, barrier.ended);
}

void BlockChecks::fence(Warp& w, const FenceNote& note) {
  const std::string_view what = note.what;
  if (what.find("proxy") != what.npos) {
    if (what.find("async") == what.npos) return;
    views();
    if (fenced_.empty()) fenced_.reset(views_.blocks, block_.threads);
    for_each_thread(w, note.lanes, [&](int thread) { clock_.release(thread, fenced_); });
    return;
  }
  const bool of_mbarriers = what.find("mbarrier_init") != what.npos;
  const Reach reach = note.scope == Scope::cta                            ? Reach::block
                      : note.scope == Scope::cluster || of_mbarriers ? Reach::cluster
                                                                          : Reach::device;
  clock_.fence(static_cast<int>(w.index), note.lanes, reach);
}

uint64_t BlockChecks::stamp_of(const Warp& w, int lane) {
  return clock_.now() | (w.first_thread + static_cast<uint32_t>(lane));
}
uint64_t BlockChecks::under_way(const Warp& w, int lane) const {
  return stamp::make(clock_.block(), stamp::kUnderWay) |
         static_cast<uint64_t>(stamp::kCopies + static_cast<int>(w.first_thread) + lane);
}

void BlockChecks::copy_issued(Warp& w, int lane, const Copy& copy) {
  const uint64_t mark = under_way(w, lane);
  // That nobody else touches the destination now was looked at before.
  stamp_range(copy.to, copy.bytes, mark, copy.at);
  if (copy.given == 0) return;
  const Run from[] = {{copy.from, copy.given}};
  visit_runs<false>({w, lane, copy.at, "cp.async"}, mark, from, false);
}

void BlockChecks::copy_done(Warp& w, int lane, const Copy& copy, const SharedPlace* mbarrier) {
  uint64_t mark = stamp_of(w, lane);
  if (mbarrier)  // only who waits for that one knows, as of a load by TMA
    mark = clock_.now() | static_cast<uint64_t>(proxy::load(mbarrier->block->checks->mbarrier_number(mbarrier->at)));
  stamp_range(copy.to, copy.bytes, mark, copy.at);
  if (copy.given != 0) restamp_range(copy.from, copy.given, under_way(w, lane), mark);
}

void BlockChecks::copies_told(const SharedPlace& mbarrier) {
  BlockChecks& owner = *mbarrier.block->checks;
  uint32_t& known = owner.mbarrier(mbarrier.at)
                        .arriving.at(views().rank, proxy::load(owner.mbarrier_number(mbarrier.at)));
  known = std::max(known, moment());
}

void BlockChecks::load_issued(const Issuer& by, std::span<const Run> runs, uint32_t mbarrier) {
  views();
  BlockChecks& asking = *by.w.block->checks;
  asking.views();
  const uint64_t mark = stamp::make(clock_.block(), stamp::kUnderWay) |
                        static_cast<uint64_t>(proxy::load(mbarrier_number(mbarrier)));
  asking.visit_runs<true>(by, mark, runs, true);
}

void BlockChecks::load_done(const Issuer& by, std::span<const Run> runs, uint32_t mbarrier) {
  const int loads = proxy::load(mbarrier_number(mbarrier));
  Handover& barrier = this->mbarrier(mbarrier);
  for (const Run& run : runs)
    stamp_range(run.memory, run.bytes, clock_.now() | static_cast<uint64_t>(loads), by.at);
  barrier.arriving.at(views_.rank, loads) = moment();
}

uint32_t BlockChecks::store_issued(const Issuer& by, std::span<const Run> runs) {
  views();
  clock_.advance();
  const uint64_t mark = clock_.now() | static_cast<uint64_t>(proxy::store(static_cast<int>(by.w.index)));
  visit_runs<true>(by, mark, runs, false);
  return clock_.tick();
}

void BlockChecks::stores_read(Warp& w, int lane, uint32_t before) {
  views();
  uint32_t& known = clock_.view(static_cast<int>(w.first_thread) + lane)
                        .at(views_.rank, proxy::store(static_cast<int>(w.index)));
  known = std::max(known, before);
}

void BlockChecks::global_access(const Issuer& by, const char* memory, uint64_t bytes, bool write, bool reduces) {
  if (launch_.fresh) {
    if ((!write || reduces) && any_fresh(memory, bytes)) report_fresh(by.w, by.lane, by.at, memory, bytes, Space::global);
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
  if (count < group.first + group.ticks.size()) return false;
  views();
  clock_.advance();
  clock_.now();
  group.ticks.push_back(clock_.tick());
  constexpr size_t kMost = 4096;  // nobody is so far behind
  if (group.ticks.size() > kMost) {
    group.ticks.pop_front();
    ++group.first;
  }
  return true;
}

void BlockChecks::wgmma_read(const Issuer& by, std::span<const Run> runs) {
  visit_runs<true>(by, clock_.now() | static_cast<uint64_t>(proxy::warpgroup(static_cast<int>(by.w.index) / 4)), runs,
                   false);
}

void BlockChecks::wgmma_waited(Warp& w, size_t pending) {
  views();
  const int group = static_cast<int>(w.index) / 4;
  Warpgroup& its = warpgroups_[static_cast<size_t>(group)];
  const uint32_t before = pending - its.first < its.ticks.size() ? its.ticks[pending - its.first] : moment();
  for_each_thread(w, ~0u, [&](int thread) {
    uint32_t& known = clock_.view(thread).at(views_.rank, proxy::warpgroup(group));
    known = std::max(known, before);
  });
}

}  // namespace emulator::ptx
