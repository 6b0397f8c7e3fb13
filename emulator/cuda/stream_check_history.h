// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "emulator/cuda/stream_check.h"
#include "emulator/machine/memory.h"

namespace emulator::cuda::stream_check {

using TracePtr = std::shared_ptr<const Trace>;

enum class Use : uint8_t { read, write, atomic, free };

/// Two operations without an order, and the bytes that they both touch.
struct Conflict {
  TracePtr earlier, later;  ///< as they ran
  Use earlier_use, later_use;
  uintptr_t begin, end;  ///< the first byte and one past the last
  bool after_free;       ///< there is an order, but `earlier` freed the memory
};

/// The last accesses to every byte: the last writer, and the readers and atomic operations since
/// that are not before another one: an operation that conflicts with a forgotten one conflicts with its successor.
class History {
 public:
  static History& get();

  /// Errors found are returned, one for a pair of operations and their uses.
  std::vector<Conflict> merge(const TracePtr& trace, const Touched& touched);
  std::vector<Conflict> use(const TracePtr& trace, uintptr_t begin, uintptr_t end, Use use);
  /// Was it written by an operation issued after `number`?
  bool written_since(uint64_t number, uintptr_t begin, uintptr_t end);
  /// The memory has a new owner from now on.
  void forget(uintptr_t begin, uintptr_t end);

 private:
  using Mask = Touched::Mask;
  struct Mark {
    TracePtr trace;
    Use use;
    std::unique_ptr<Mask> mask;  ///< nullptr: the whole page
  };
  using Page = std::vector<Mark>;
  static constexpr uintptr_t kRegionPages = 512;
  using Region = std::array<Page, kRegionPages>;
  class Found;

  Page& page(uintptr_t address);
  Page* find(uintptr_t address);
  void add(Page& page, uintptr_t address, const TracePtr& trace, Use use, const Mask& mask, Found& found);
  template <class Visit>
  void visit(uintptr_t begin, uintptr_t end, Visit&& visit);

  std::mutex mutex_;
  std::unordered_map<uintptr_t, std::unique_ptr<Region>> regions_;
};

}  // namespace emulator::cuda::stream_check
