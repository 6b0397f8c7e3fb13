// SPDX-License-Identifier: Apache-2.0
// The order that partial barriers pass on: named barriers, mbarriers, those of clusters; fences.
#include <bit>

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
  const Reach reach = note.scope == Scope::cta                       ? Reach::block
                      : note.scope == Scope::cluster || of_mbarriers ? Reach::cluster
                                                                     : Reach::device;
  clock_.fence(static_cast<int>(w.index), note.lanes, reach);
}

}  // namespace emulator::ptx
