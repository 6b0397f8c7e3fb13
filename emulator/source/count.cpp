// SPDX-License-Identifier: Apache-2.0
#include "emulator/source/count.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <unordered_map>

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
struct Request {
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
  std::deque<Request> open;
};

/// Of lanes [first, first + count): the largest number of different words in one bank (0 when none is active), and all
/// different words.
struct Pass {
  int depth = 0, words = 0;
};
Pass pass_of(const Request& request, int first, int count) {
  std::vector<uintptr_t> words;
  for (int lane = first; lane < first + count; ++lane)
    if (request.lanes >> lane & 1u)
      for (uintptr_t w = request.address[lane] / 4; w <= (request.address[lane] + request.bytes[lane] - 1) / 4; ++w)
        words.push_back(w);
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  int in_bank[32] = {};
  Pass pass{0, static_cast<int>(words.size())};
  for (const uintptr_t w : words) pass.depth = std::max(pass.depth, ++in_bank[w % 32]);
  return pass;
}

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
    Request& request = place.open[at];
    (bytes ? request.lanes : request.passed) |= 1u << lane;
    request.address[lane] = address;
    request.bytes[lane] = static_cast<uint32_t>(bytes);
    while (!place.open.empty() && (place.open.front().lanes | place.open.front().passed) == 0xffffffffu) {
      if (place.open.front().lanes) add(place.open.front());
      place.open.pop_front();
      ++place.closed;
    }
  }

  /// No more lanes will join the requests of this warp.
  void close(int warp) {
    for (auto& [key, place] : places_[warp])
      for (const Request& request : place.open)
        if (request.lanes) add(request);
    places_[warp].clear();
  }

  void add(const Request& request) {
    if (request.kind == Kind::shared)
      add_shared(request);
    else
      add_global(request, request.kind == Kind::load ? counts.loads : counts.stores);
  }

  static void add_global(const Request& request, GlobalCounts& to) {
    std::vector<uintptr_t> sectors;
    for (int lane = 0; lane < kLanes; ++lane)
      if (request.lanes >> lane & 1u) {
        to.bytes += request.bytes[lane];
        const uintptr_t end = request.address[lane] + request.bytes[lane] - 1;
        for (uintptr_t s = request.address[lane] / 32; s <= end / 32; ++s) sectors.push_back(s);
      }
    std::sort(sectors.begin(), sectors.end());
    ++to.requests;
    to.sectors += std::unique(sectors.begin(), sectors.end()) - sectors.begin();
  }

  void add_shared(const Request& request) {
    const uint32_t widest = *std::max_element(request.bytes, request.bytes + kLanes);
    const int part = widest <= 4 ? 32 : widest <= 8 ? 16 : 8;
    ++counts.shared.requests;
    for (int first = 0; first < kLanes; first += 2 * part) {
      if (const Pass both = pass_of(request, first, std::min(2 * part, kLanes)); part < kLanes && both.depth <= 1) {
        counts.shared.wavefronts += both.depth;
        continue;
      }
      for (int p = first; p < std::min(first + 2 * part, kLanes); p += part) {
        const int depth = pass_of(request, p, part).depth;
        counts.shared.wavefronts += depth;
        counts.shared.conflicts += std::max(depth - 1, 0);
      }
    }
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
