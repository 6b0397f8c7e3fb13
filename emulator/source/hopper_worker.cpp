// SPDX-License-Identifier: Apache-2.0
// A worker's part in instructions of Hopper: threads that wait for barriers, copies that arrive, blocks of a
// cluster.
#include <sys/mman.h>

#include "emulator/machine/fault.h"
#include "emulator/source/check.h"
#include "emulator/source/hopper_block.h"
#include "emulator/source/report.h"
#include "emulator/source/worker.h"

namespace emulator::source {

void HopperBlock::begin(int threads) {
  barriers.reset();
  copies.reset();
  named = {};
  registers.begin(threads);
  for (Warpgroup& group : warpgroups) group.reset();
  own_barrier = {};
  cluster_arrival.fill(-1);
}

void check_hopper_exit(Worker& worker) {
  const HopperBlock& hopper = worker.hopper();
  if (const BulkStore* store = hopper.copies.unread_of(worker.current()))
    worker.report().fail([&] {
      return cat("exits while the tma_store at ", store->where,
                 " may still read shared memory: tma_store_commit() and tma_store_wait_read<0>() must come before");
    });
  const int thread = worker.current();
  if (const SourceLine* at = hopper.warpgroups[static_cast<size_t>(thread / Warpgroup::kThreads)].unfinished(thread))
    worker.report().fail([&] { return cat("exits with a wgmma that it never waited for, issued at ", *at); });
}

void finish_hopper_block(Worker& worker) {
  BulkCopies& copies = worker.hopper().copies;
  if (copies.any_loads()) {
    const BulkLoad& load = copies.first_load();
    worker.report().fail_for(load.thread, [&] {
      return cat("the block ends while the load at ", load.where,
                 " is under way to its shared memory: no thread has waited");
    });
  }
  copies.finish(worker);
}

void Worker::begin_hopper() {
  if (!hopper_) hopper_ = std::make_unique<HopperBlock>();
  hopper_->begin(threads_count_);
  hopper_used_ = true;
}

void Worker::block(const char* waits_in, const void* on, SourceLine where) {
  threads_[current_].on = on;
  warps_[current_ / kLanes].blocked |= 1u << lane();
  park(waits_in, where, 0);
}

bool Worker::has_loads() const { return hopper_used_ && hopper_->copies.any_loads(); }

bool Worker::make_progress() {
  if (cluster_ && cluster_->yield_to_runnable(rank_)) return true;
  if (has_loads()) {
    if (seeded_)
      hopper_->copies.deliver_by_chance(*this, random(), true);
    else
      hopper_->copies.deliver(*this, 0);
    return true;
  }
  return cluster_ && cluster_->yield_to_copying(rank_);
}

void Worker::act_at_random() {
  if (cluster_ && random() % 16 == 0) cluster_->yield_to_runnable(rank_);
  if (!hopper_used_ || !hopper_->copies.any() || random() % 16) return;
  BulkCopies& copies = hopper_->copies;
  if (copies.any_loads())
    copies.deliver_by_chance(*this, random(), false);
  else
    copies.read_a_store(random());
}

bool Worker::run_member(Cluster& cluster, int rank, const Launch& launch, LaunchClock* clock, uint64_t block,
                        uint64_t seed) {
  cluster_ = &cluster;
  rank_ = rank;
  prepare(launch, clock, block, seed);
  hopper();
  protect_arena(false);
  const bool first = cluster.join(rank, *this, seed);
  protect_arena(true);
  bool good = false;
  if (first) {
    good = run_prepared();
  } else {
    abandoned_ = true;
    std::string unused;
    check_block_end(*this, unused);
  }
  protect_arena(false);  // for as long as others of the cluster may run
  cluster.leave(rank, !good && !abandoned_);
  protect_arena(true);
  cluster_ = nullptr;
  return good;
}

void Worker::protect_arena(bool usable) { mprotect(arena_, kArenaBytes, usable ? PROT_READ | PROT_WRITE : PROT_NONE); }

void Worker::abandon() {
  abandoned_ = true;
  reporting_ = true;
  error_ = "another block of the cluster has failed";
  stop();
}

int Worker::cluster_size() const { return cluster_ ? cluster_->size() : 1; }

uint64_t Worker::cluster_number() const { return cluster_ ? cluster_->number() : block_; }

int Worker::cluster_threads_left() const {
  return cluster_size() * threads_count_ - (cluster_ ? cluster_->exited_threads() : exited_);
}

ClusterBarrier& Worker::cluster_barrier() { return cluster_ ? cluster_->barrier() : hopper().own_barrier; }

Worker& Worker::member(int rank) { return cluster_ ? cluster_->member(rank) : *this; }

Worker& Worker::peer(int rank, const char* what, SourceLine where) {
  if (rank < 0 || rank >= cluster_size())
    report().fail([&] { return cat(what, " at ", where, ": block ", rank, " of a cluster of ", cluster_size()); });
  if (rank == rank_) return *this;
  if (!cluster_->has_begun(rank) || cluster_->has_left(rank))
    report().fail([&] {
      return cat(what, " at ", where, ": block ", rank, " of the cluster ",
                 cluster_->has_left(rank) ? "has exited: cluster_sync() must come before its end"
                                          : "may not have begun: cluster_sync() must come before");
    });
  return cluster_->member(rank);
}

Worker& Worker::peer_of_load(int rank, int thread, SourceLine where) {
  if (rank != rank_ && cluster_->has_left(rank))
    report().fail_for(thread, [&] {
      return cat("the load issued at ", where, " arrives at block ", rank,
                 " of the cluster, which has exited: "
                 "cluster_sync() must come before its end");
    });
  return member(rank);
}

void* Worker::map_to(const Worker& owner, const void* pointer) const {
  const uintptr_t address = reinterpret_cast<uintptr_t>(pointer);
  if (in_dynamic_shared_arena(address)) return owner.arena_ + (address - reinterpret_cast<uintptr_t>(arena_));
  return reinterpret_cast<void*>(owner.static_shared_.begin + (address - static_shared_.begin));
}

void Worker::check_shared(const char* what, const void* pointer, size_t bytes, SourceLine where) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(pointer);
  if (address % bytes)
    report().fail(
        [&] { return cat(what, " at ", where, ": shared address ", hex(address), " is not a multiple of ", bytes); });
  if (!is_shared(address, bytes))
    report().fail([&] {
      return cat(what, " at ", where, ": address ", hex(address), " is not in the shared memory of this block");
    });
}

bool Worker::is_operand(uintptr_t offset) const {
  const uintptr_t begin = static_cast<uintptr_t>(shared_ - arena_);
  return offset >= begin && offset + 16 <= begin + launch_->dynamic_shared;
}

std::string Worker::describe_operand(uintptr_t offset) const { return describe_shared(arena_ + offset); }

std::string Worker::describe_shared(const void* pointer) const {
  const uintptr_t address = reinterpret_cast<uintptr_t>(pointer);
  if (in_dynamic_shared_arena(address))
    return cat("byte ", static_cast<const char*>(pointer) - shared_, " of dynamic shared memory");
  if (address >= static_shared_.begin && address < static_shared_.end) return "static shared memory";
  return cat("address ", hex(address));
}

std::string Worker::describe_cluster_memory(uintptr_t address) const {
  for (int r = 0; cluster_ && r < cluster_->size(); ++r)
    if (const Worker& other = cluster_->member(r); other.in_dynamic_shared_arena(address))
      return cat(other.describe_shared(reinterpret_cast<const void*>(address)), " of block ", r,
                 " of the cluster, which ",
                 cluster_->has_left(r) ? "has exited: cluster_sync() must come before its end"
                                       : "may not have begun: cluster_sync() must come before");
  return "";
}

std::string Worker::describe_peer(uintptr_t address) const {
  for (int r = 0; cluster_ && r < cluster_->size(); ++r) {
    if (r == rank_) continue;
    const Worker& other = cluster_->member(r);
    if (other.in_dynamic_shared_arena(address) ||
        address - other.static_shared_.begin < other.static_shared_.end - other.static_shared_.begin)
      return cat(other.describe_shared(reinterpret_cast<const void*>(address)), " of block ", r, " of the cluster");
  }
  return "";
}

std::string Worker::place_of_block(uint64_t block) const {
  const uint3 b = block_index(block);
  return cat("block (", b.x, ",", b.y, ",", b.z, ")");
}

std::string Worker::describe_blocked(const Thread& thread) const {
  std::string text = cat("wait in ", thread.waits_in, " at ", thread.where);
  // The mbarrier that is waited for is this block's own.
  const uintptr_t address = reinterpret_cast<uintptr_t>(thread.on);
  if (is_shared(address, 8))
    if (const Mbarrier* barrier = hopper_->barriers.find(thread.on)) text += cat(": ", barrier->text());
  for (size_t id = 0; id < hopper_->named.size(); ++id)
    if (&hopper_->named[id] == thread.on)
      text += cat(": ", hopper_->named[id].arrived, " of ", hopper_->named[id].threads, " threads are at barrier ", id);
  return text;
}

std::string Worker::describe_peers() const {
  std::string text;
  for (int r = 0; cluster_ && r < cluster_->size(); ++r) {
    if (r == rank_) continue;
    const Worker& other = cluster_->member(r);
    const uint3 b = block_index(other.block_);
    text += cat("\nblock (", b.x, ",", b.y, ",", b.z, "):\n", other.describe_threads());
  }
  return text;
}

}  // namespace emulator::source
