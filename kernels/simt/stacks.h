// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::emulator {

/// Stacks of the fibers of one worker: one reserved range, each stack above a guard page, made usable on first use.
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
    return base_ + static_cast<size_t>(stack + 1) * kStride - ((static_cast<size_t>(stack) * 448 % 4096) & ~size_t{63});
  }
  const char* begin() const { return base_; }
  size_t made_bytes() const { return static_cast<size_t>(made_) * kStride; }
  size_t bytes() const { return static_cast<size_t>(count_) * kStride; }
  bool contains(uintptr_t address) const { return address - reinterpret_cast<uintptr_t>(base_) < bytes(); }
  /// The lowest usable address of the stack that holds this address.
  const char* bottom(uintptr_t address) const {
    return base_ + (address - reinterpret_cast<uintptr_t>(base_)) / kStride * kStride + kGuard;
  }
  /// True for an address in the guard page of a stack, or in a stack that no fiber has.
  bool in_guard(uintptr_t address) const {
    if (!contains(address)) return false;
    const size_t offset = address - reinterpret_cast<uintptr_t>(base_);
    return offset % kStride < kGuard || offset / kStride >= static_cast<size_t>(made_);
  }

 private:
  static constexpr size_t kGuard = 4096;
  static constexpr size_t kStride = kBytes + kGuard;

  char* base_;
  int count_;
  int made_ = 0;
  std::vector<int> free_;
};

}  // namespace weft::emulator
