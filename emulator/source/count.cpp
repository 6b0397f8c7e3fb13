// SPDX-License-Identifier: Apache-2.0
#include "emulator/source/count.h"

#include <deque>
#include <unordered_map>

#include "emulator/machine/requests.h"
#include "emulator/source/instrument.h"
#include "emulator/source/memory.h"
#include "emulator/source/simt.h"
#include "emulator/source/static_shared.h"
#include "emulator/source/watch.h"
#include "emulator/source/worker.h"

namespace emulator::source {

namespace {

enum class Kind : uint8_t { load, store, shared };

/// One instruction of one warp, as far as its lanes have come.
struct Access {
  Kind kind;
  uint32_t lanes = 0;   // that access memory
  uint32_t passed = 0;  // and those that passed by without
  uint32_t bytes[kLanes];
  uintptr_t address[kLanes];
};

/// How often a lane came to an instruction, and the requests that some lanes of the warp still miss.
struct Place {
  uint32_t visits[kLanes] = {};
  uint32_t closed = 0;  // requests that are done with
  std::deque<Access> open;
};

class Counter : public Watcher {
 public:
  Counts counts;

  void block_begins(Worker& worker) override {
    worker_ = &worker;
    ++counts.blocks;
  }
  void block_ends() override {
    for (int warp = 0; warp < kMaxWarps; ++warp) close(warp);
    worker_ = nullptr;
  }
  void barrier() override {
    ++counts.barriers;
    for (int warp = 0; warp < kMaxWarps; ++warp) close(warp);
  }
  void sync_warp(int warp) override { close(warp); }
  void read(const void* address, size_t bytes, SourceLine where) override {
    note(Kind::shared, reinterpret_cast<uintptr_t>(address), bytes, key_of(where, 0));
  }
  void copy(const void* destination, size_t bytes, const void* source, size_t source_bytes, SourceLine where) override {
    note(Kind::shared, reinterpret_cast<uintptr_t>(destination), bytes, key_of(where, 1));
    note(Kind::load, reinterpret_cast<uintptr_t>(source), source_bytes, key_of(where, 2));
  }

  /// A plain access from instrumented code.
  void access(bool write, uintptr_t address, size_t bytes, uintptr_t instruction) {
    if (!worker_ || worker_->reporting()) return;
    if (in_device_range(address))
      note(write ? Kind::store : Kind::load, address, bytes, instruction);
    else if (is_shared(address))
      note(Kind::shared, address, bytes, instruction);
  }

 private:
  static uint64_t key_of(SourceLine where, uint64_t part) {
    return reinterpret_cast<uintptr_t>(where.file) * 0x9e3779b97f4a7c15u + static_cast<uint64_t>(where.line) * 4 + part;
  }

  bool is_shared(uintptr_t address) const {
    if (worker_->in_dynamic_shared_arena(address)) return true;
    const Worker::Range& statics = worker_->static_shared();  // also holds threadIdx and the like
    return address >= statics.begin && address < statics.end && find_shared_variable(address - statics.begin);
  }

  /// `bytes` 0: the lane takes part and accesses nothing.
  void note(Kind kind, uintptr_t address, size_t bytes, uint64_t key) {
    const int thread = worker_->current(), lane = thread % kLanes;
    Place& place = places_[thread / kLanes][key];
    const uint32_t at = place.visits[lane]++ - place.closed;
    while (place.open.size() <= at) place.open.push_back({kind, 0, 0, {}, {}});
    Access& access = place.open[at];
    (bytes ? access.lanes : access.passed) |= 1u << lane;
    access.address[lane] = address;
    access.bytes[lane] = static_cast<uint32_t>(bytes);
    while (!place.open.empty() && (place.open.front().lanes | place.open.front().passed) == 0xffffffffu) {
      if (place.open.front().lanes) add(place.open.front());
      place.open.pop_front();
      ++place.closed;
    }
  }

  /// No more lanes will join the requests of this warp.
  void close(int warp) {
    for (auto& [key, place] : places_[warp])
      for (const Access& access : place.open)
        if (access.lanes) add(access);
    places_[warp].clear();
  }

  void add(const Access& access) {
    const Request request{access.lanes, access.address, access.bytes};
    if (access.kind == Kind::shared) {
      const Wavefronts found = wavefronts_of(request);
      ++counts.shared.requests;
      counts.shared.wavefronts += found.all;
      counts.shared.conflicts += found.conflicts;
      return;
    }
    GlobalCounts& to = access.kind == Kind::load ? counts.loads : counts.stores;
    for (int lane = 0; lane < kLanes; ++lane)
      if (access.lanes >> lane & 1u) to.bytes += access.bytes[lane];
    ++to.requests;
    to.sectors += sectors_of(request);
  }

  Worker* worker_ = nullptr;
  std::unordered_map<uint64_t, Place> places_[kMaxWarps];
};

Counter* counter = nullptr;

void access(bool write, const void* address, size_t bytes, const void* instruction) {
  if (counter) [[unlikely]]
    counter->access(write, reinterpret_cast<uintptr_t>(address), bytes, reinterpret_cast<uintptr_t>(instruction));
}

}  // namespace

bool can_count() { return true; }

Counts count(const std::function<void()>& work) {
  struct Counting {
    Counter counter_;
    const int threads = thread_count();
    Counting() {
      shared_variables();  // read before, not between two accesses
      set_thread_count(1);
      watcher = counter = &counter_;
    }
    ~Counting() {
      watcher = counter = nullptr;
      set_thread_count(threads);
    }
  } counting;
  work();
  return counting.counter_.counts;
}

// Called by instrument.cpp.
template <size_t kBytes>
void instrumented_read(const void* address, const void* instruction) {
  access(false, address, kBytes, instruction);
}
template <size_t kBytes>
void instrumented_write(const void* address, const void* instruction) {
  access(true, address, kBytes, instruction);
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
  if (bytes) access(false, address, bytes, instruction);
}
void instrumented_write_range(const void* address, size_t bytes, const void* instruction) {
  if (bytes) access(true, address, bytes, instruction);
}

}  // namespace emulator::source
