// SPDX-License-Identifier: Apache-2.0
// The order that partial barriers pass on: named barriers, mbarriers, those of clusters; fences.
#include <bit>

#include "emulator/ptx/check/checker.h"

namespace emulator::ptx {

namespace {

/// Calls act(thread) for lanes of a warp.
template <class Act>
void for_each_thread(const Warp& w, uint32_t lanes, const Act& act) {
  for (; lanes != 0; lanes &= lanes - 1) act(static_cast<int>(w.first_thread) + std::countr_zero(lanes));
}

}  // namespace

BlockRaces& BlockChecks::peer(uint32_t rank) { return *block_.cluster->blocks[rank]->checks; }

void BlockChecks::barrier_arrive(Warp& w, uint32_t lanes, size_t id) {
  for_each_thread(w, lanes, [&](int thread) { BlockRaces::barrier_arrive(thread, id); });
}
void BlockChecks::barrier_complete(size_t id, bool whole) {
  if (whole) return clock_.barrier();
  BlockRaces::barrier_complete(id);
}
void BlockChecks::barrier_acquire(Warp& w, uint32_t lanes, size_t id) {
  for_each_thread(w, lanes, [&](int thread) { BlockRaces::barrier_acquire(thread, id); });
}

void BlockChecks::cluster_arrive(Warp& w, uint32_t lanes, bool relaxed) {
  for_each_thread(w, lanes, [&](int thread) { BlockRaces::cluster_arrive(thread, relaxed); });
}
void BlockChecks::cluster_acquire(Warp& w, uint32_t lanes) {
  for_each_thread(w, lanes, [&](int thread) { BlockRaces::cluster_acquire(thread); });
}

void BlockChecks::mbarrier_init(Warp& w, const Instruction* i, int lane, const char* place) {
  BlockRaces::mbarrier_init(Issuer{w, lane, site(i), "mbarrier.init"}, place);
}
void BlockChecks::mbarrier_use(Warp& w, const Instruction* i, int lane, const char* place) {
  BlockRaces::mbarrier_use(Issuer{w, lane, site(i), "use of an mbarrier"}, place);
}
void BlockChecks::mbarrier_arrive(Warp& w, int lane, const SharedPlace& place, bool relaxed) {
  BlockRaces::mbarrier_arrive(static_cast<int>(w.first_thread) + lane, *place.block->checks, place.at, relaxed);
}
void BlockChecks::mbarrier_acquire(Warp& w, int lane, uint32_t at) {
  BlockRaces::mbarrier_acquire(static_cast<int>(w.first_thread) + lane, at);
}

void BlockChecks::fence(Warp& w, const FenceNote& note) {
  const std::string_view what = note.what;
  if (what.find("proxy") != what.npos) {
    if (what.find("async") == what.npos) return;
    for_each_thread(w, note.lanes, [&](int thread) { proxy_fence(thread); });
    return;
  }
  const bool of_mbarriers = what.find("mbarrier_init") != what.npos;
  const Reach reach = note.scope == Scope::cta                       ? Reach::block
                      : note.scope == Scope::cluster || of_mbarriers ? Reach::cluster
                                                                     : Reach::device;
  clock_.fence(static_cast<int>(w.index), note.lanes, reach);
  if (of_mbarriers) for_each_thread(w, note.lanes, [&](int thread) { init_fence(thread); });
}

}  // namespace emulator::ptx
