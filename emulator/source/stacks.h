// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace emulator::source {

/// Stacks of the fibers of one worker: one reserved range, each stack above a guard (pages.h), made usable on first
/// use.
class Stacks {
 public:
  static constexpr size_t kBytes = 256 << 10;

  explicit Stacks(int count);
  ~Stacks();
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;

  int take();
  void give_back(int stack) { free_.push_back(stack); }
  void give_back_all();

  /// The highest address of a stack, staggered so that the tops of the stacks do not share cache sets.
  char* top(int stack) const {
    return base_ + static_cast<size_t>(stack + 1) * stride_ - ((static_cast<size_t>(stack) * 448 % 4096) & ~size_t{63});
  }
  const char* begin() const { return base_; }
  size_t made_bytes() const { return static_cast<size_t>(made_) * stride_; }
  size_t bytes() const { return static_cast<size_t>(count_) * stride_; }
  bool contains(uintptr_t address) const { return address - reinterpret_cast<uintptr_t>(base_) < bytes(); }
  /// The lowest usable address of the stack that holds this address.
  const char* bottom(uintptr_t address) const {
    return base_ + (address - reinterpret_cast<uintptr_t>(base_)) / stride_ * stride_ + guard_;
  }
  /// True for an address in the guard below a stack, or in a stack that no fiber has.
  bool in_guard(uintptr_t address) const {
    if (!contains(address)) return false;
    const size_t offset = address - reinterpret_cast<uintptr_t>(base_);
    return offset % stride_ < guard_ || offset / stride_ >= static_cast<size_t>(made_);
  }

 private:
  const size_t guard_, stride_;
  char* base_;
  int count_;
  int made_ = 0;
  std::vector<int> free_;
};

}  // namespace emulator::source
