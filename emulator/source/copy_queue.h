// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>

#include "emulator/source/kernel_api.h"

namespace emulator::source {

/// The cp.async copies of one thread that it has not waited for, in order, cut into groups by commits.
class CopyQueue {
 public:
  struct Copy {
    void* destination;
    const void* source;
    uint8_t bytes, source_bytes;
    SourceLine where;
  };

  /// False when the queue is full.
  bool push(const Copy& copy);
  bool commit();
  /// Calls `deliver(copy)` for the oldest groups until at most `pending` are left.
  template <class Deliver>
  void wait(int pending, Deliver&& deliver) {
    while (groups_ > pending) {
      const uint32_t end = ends_[first_group_ % kGroups];
      for (; first_ != end; ++first_) deliver(copies_[first_ % kCopies]);
      ++first_group_;
      --groups_;
    }
  }
  /// As wait(0), and also the copies that were not committed (cp.async.wait_all).
  template <class Deliver>
  void wait_all(Deliver&& deliver) {
    wait(0, deliver);
    for (; first_ != last_; ++first_) deliver(copies_[first_ % kCopies]);
    committed_ = last_;
  }
  /// Copies that were issued and never waited for.
  int outstanding() const { return static_cast<int>(last_ - first_); }
  const Copy& oldest() const { return copies_[first_ % kCopies]; }
  void reset() { first_ = last_ = committed_ = first_group_ = 0, groups_ = 0; }

 private:
  static constexpr uint32_t kCopies = 256, kGroups = 64;
  std::array<Copy, kCopies> copies_;
  std::array<uint32_t, kGroups> ends_;
  uint32_t first_ = 0, last_ = 0, committed_ = 0, first_group_ = 0;
  int groups_ = 0;
};

inline bool CopyQueue::push(const Copy& copy) {
  if (last_ - first_ == kCopies) return false;
  copies_[last_++ % kCopies] = copy;
  return true;
}

inline bool CopyQueue::commit() {
  if (groups_ == static_cast<int>(kGroups)) return false;
  ends_[(first_group_ + static_cast<uint32_t>(groups_++)) % kGroups] = last_;
  committed_ = last_;
  return true;
}

}  // namespace emulator::source
