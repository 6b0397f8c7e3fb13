// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "emulator/machine/tensor_box.h"
#include "emulator/source/kernel_api.h"

namespace emulator::source {

class Worker;

/// A load by TMA that has not arrived: its destination is NaN until then.
struct BulkLoad {
  TensorBox box;  ///< unused if `plain` is set
  BoxPlace place;
  const void* plain;  ///< the source of a bulk_load
  char* shared;
  int bytes;
  uint16_t blocks;  ///< of the cluster; 0: the own one
  void* barrier;
  int thread;
  SourceLine where;
};

/// A store by TMA: its source is read at the last moment that the waits allow, and later it is written.
struct BulkStore {
  TensorBox box;
  BoxPlace place;
  const char* shared;
  int bytes;
  int thread;
  int group;  ///< of this thread; -1: not committed
  SourceLine where;
  uint32_t issued;  ///< its moment, for the checked build
  bool was_read;
  std::vector<char> content;
};

/// The copies by TMA that one block has under way.
class BulkCopies {
 public:
  void reset() {
    loads_.clear();
    late_ = kNone;
    stores_.clear();
    groups_.clear();
  }
  bool any_loads() const { return !loads_.empty(); }
  bool any() const { return !loads_.empty() || !stores_.empty(); }

  void add(Worker& worker, const BulkLoad& load);
  void add(BulkStore&& store) { stores_.push_back(std::move(store)); }
  void commit(int thread);
  void wait(Worker& worker, int thread, int pending, bool only_reads);
  /// Completes load `i`, the oldest being 0.
  void deliver(Worker& worker, size_t i);
  /// Completes one of the loads by chance. Now and then one is late: it comes when all others have, and nobody can run
  /// on without (`last`).
  void deliver_by_chance(Worker& worker, uint64_t random, bool last);
  const BulkLoad& first_load() const { return loads_.front(); }
  /// Reads one store's source early, as the hardware may.
  void read_a_store(uint64_t random);
  /// The thread's first store whose source may not have been read, or nullptr.
  const BulkStore* unread_of(int thread) const;
  /// Writes what is left: stores need not be waited for beyond their reads.
  void finish(Worker& worker);

 private:
  void read(BulkStore& store);
  void write(Worker& worker, BulkStore& store);

  static constexpr size_t kNone = SIZE_MAX;

  std::vector<BulkLoad> loads_;
  size_t late_ = kNone;
  std::vector<BulkStore> stores_;
  std::unordered_map<int, int> groups_;  ///< committed so far, by thread
};

}  // namespace emulator::source
