// SPDX-License-Identifier: Apache-2.0
// The checked build's side of Hopper: order through mbarriers, named barriers and clusters, and accesses that TMA and
// wgmma make on behalf of threads.
#include "emulator/machine/fault.h"
#include "emulator/source/check.h"
#include "emulator/source/checker.h"

namespace emulator::source {

Views& Checker::views() {
  if (views_used_) return views_;
  views_used_ = true;
  const size_t blocks = static_cast<size_t>(worker_.cluster_size());
  const size_t threads = static_cast<size_t>(worker_.threads_count());
  views_.rank = worker_.rank();
  views_.blocks.clear();
  for (int r = 0; r < worker_.cluster_size(); ++r) views_.blocks.push_back(worker_.member(r).checker()->clock_.block());
  views_.of_thread.resize(threads);
  for (View& view : views_.of_thread) view.reset(blocks);
  views_.fenced.assign(threads, 0);
  mbarriers_.clear();
  for (Handover& named : named_) named = {};
  cluster_ = {};
  clock_.use_views(&views_);
  return views_;
}

Handover& Checker::mbarrier(int number, bool made) {
  const size_t blocks = views().blocks.size(), n = static_cast<size_t>(number);
  if (mbarriers_.size() <= n) mbarriers_.resize(n + 1);
  if (made || mbarriers_[n].ended.empty()) mbarriers_[n].reset(blocks);
  return mbarriers_[n];
}

Handover& Checker::named(int id) {
  const size_t blocks = views().blocks.size();
  Handover& handover = named_[static_cast<size_t>(id)];
  if (handover.ended.empty()) handover.reset(blocks);
  return handover;
}

Handover& Checker::cluster() {
  Checker& keeper = *worker_.member(0).checker();
  const size_t blocks = keeper.views().blocks.size();
  if (keeper.cluster_.ended.empty()) keeper.cluster_.reset(blocks);
  return keeper.cluster_;
}

Checker* Checker::peer_with(uintptr_t address) {
  for (int r = 0; r < worker_.cluster_size(); ++r) {
    Worker& other = worker_.member(r);
    if (r == worker_.rank()) continue;
    const auto& range = other.static_shared();
    if (other.in_dynamic_shared_arena(address) || address - range.begin < range.end - range.begin) {
      views();
      return other.checker();
    }
  }
  return nullptr;
}

void Checker::written_by(int proxy, uintptr_t address, size_t bytes, Site at, bool in_flight) {
  size_t offset;
  Shadow* const shadow = shared_shadow(address, offset);
  const uint64_t now = clock_.proxy_stamp(proxy);
  for (size_t i = 0; i < bytes; i += 4) shadow->word(offset + i) = {now, {}, in_flight ? at | kInFlight : at, {}, 0};
}

void Checker::read_by(int proxy, uintptr_t address, size_t bytes, Site at) {
  views();
  size_t offset;
  Shadow* const shadow = shared_shadow(address, offset);
  const int thread = worker_.current();
  Visitor<true> visitor{clock_, thread, clock_.now(thread), at};
  const uint64_t reader = clock_.now(proxy);
  const auto visit_cell = [&](Cell& cell, uintptr_t at_address) {
    const Event event{at_address, 4, Access::read, at, thread};
    if (!clock_.is_live(stamp::block(cell.write))) never_written(event);
    if (!visitor.read_as(cell, at_address, reader)) race(event, visitor.conflict);
    const int writer = stamp::thread(cell.write);
    if (stamp::block(cell.write) == clock_.block() && writer < worker_.threads_count() &&
        stamp::tick(cell.write) >= views_.fenced[static_cast<size_t>(writer)])
      not_fenced(event, cell);
  };
  for (size_t i = 0; i < bytes; i += 4) {
    Cell& word = shadow->word(offset + i);
    if (!is_split<true>(word)) {
      visit_cell(word, address + i);
      continue;
    }
    for (size_t k = 0; k < 4; ++k) visit_cell(shadow->byte(offset + i + k), address + i + k);
  }
}

void Checker::global_write_by(int thread, uintptr_t address, size_t bytes, Site at) {
  std::fill_n(device_written_ + (address - device_begin_), bytes, uint8_t{1});
  bool unused = false;
  clock_.global_write(clock_.now(thread));
  visit_as<false, Access::write>(thread, device_shadow_, address - device_begin_, address, bytes, at, unused);
}

void Checker::not_fenced(const Event& e, const Cell& cell) {
  worker_.report();
  found_unwritten_ = false;
  worker_.fail([&] {
    return cat("the async proxy reads at ", site_text(e.at), " what ", worker_.place(stamp::thread(cell.write)),
               " wrote at ", site_text(cell.write_at), ": ", describe(e.address),
               ". Missing: fence_proxy_async() in the thread that wrote, before the barrier.");
  });
}

// Called by the emulated instructions.

namespace {

Checker& of(Worker& worker) { return *worker.checker(); }
Checker& mine() { return of(*Worker::running()); }
uintptr_t number(const void* address) { return reinterpret_cast<uintptr_t>(address); }
void release_to(View& view) {
  mine().views();
  mine().clock().release(Worker::running()->current(), view);
}
void acquire_from(const View& view) {
  mine().views();
  mine().clock().acquire(Worker::running()->current(), view);
}

}  // namespace

bool access_checked() { return true; }

void check_mbarrier_made(int barrier) { mine().mbarrier(barrier, true); }
void check_mbarrier_access(Worker& owner, const void* address, SourceLine where) {
  mine().views();
  mine().access_in<Access::atomic>(of(owner), number(address), 8, site_of(where));
}
void check_mbarrier_release(Worker& owner, int barrier) { release_to(of(owner).mbarrier(barrier).arriving); }
void check_mbarrier_phase(Worker& owner, int barrier) {
  Handover& handover = of(owner).mbarrier(barrier);
  handover.ended.learn(handover.arriving);
}
void check_mbarrier_acquire(int barrier) { acquire_from(mine().mbarrier(barrier).ended); }

void check_proxy_fence() {
  Views& views = mine().views();
  mine().clock().advance();
  views.fenced[static_cast<size_t>(Worker::running()->current())] = mine().clock().tick();
}

void check_load_issued(Worker& owner, const void* shared, int bytes, int barrier, SourceLine where) {
  mine().views();
  mine().access_in<Access::write>(of(owner), number(shared), static_cast<size_t>(bytes), site_of(where));
  of(owner).written_by(proxy::load(barrier), number(shared), static_cast<size_t>(bytes), site_of(where), true);
}
void check_load_done(Worker& owner, const void* shared, int bytes, int barrier, SourceLine where) {
  Checker& checker = of(owner);
  checker.written_by(proxy::load(barrier), number(shared), static_cast<size_t>(bytes), site_of(where), false);
  checker.clock().advance();
  checker.mbarrier(barrier).arriving.at(owner.rank(), proxy::load(barrier)) = checker.clock().tick();
}

void check_store_issued(const void* shared, int bytes, SourceLine where) {
  mine().read_by(proxy::kStore, number(shared), static_cast<size_t>(bytes), site_of(where));
}
void check_store_read_done(const void*, int, int thread, SourceLine) {
  Views& views = mine().views();
  mine().clock().advance();
  views.of_thread[static_cast<size_t>(thread)].at(views.rank, proxy::kStore) = mine().clock().tick();
}
void check_store_written(const void* global, size_t bytes, int thread, SourceLine where) {
  mine().global_write_by(thread, number(global), bytes, site_of(where));
}

void check_wgmma_read(int warpgroup, const void* shared, SourceLine where) {
  mine().read_by(proxy::warpgroup(warpgroup), number(shared), 16, site_of(where));
}
void check_warpgroup_done(int warpgroup) {
  Views& views = mine().views();
  mine().clock().advance();
  for (size_t t = 0; t < 128; ++t)
    views.of_thread[static_cast<size_t>(warpgroup) * 128 + t].at(views.rank, proxy::warpgroup(warpgroup)) =
        mine().clock().tick();
}

void check_named_arrive(int id) { release_to(mine().named(id).arriving); }
void check_named_complete(int id) {
  Handover& handover = mine().named(id);
  handover.ended.learn(handover.arriving);
}
void check_named_acquire(int id) { acquire_from(mine().named(id).ended); }

void check_cluster_arrive() { release_to(mine().cluster().arriving); }
void check_cluster_barrier() {
  Handover& handover = mine().cluster();
  handover.ended.learn(handover.arriving);
}
void check_cluster_acquire() { acquire_from(mine().cluster().ended); }

}  // namespace emulator::source
