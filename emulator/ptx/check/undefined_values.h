// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <vector>

#include "emulator/machine/stamp.h"
#include "emulator/ptx/parse/ast.h"

// Registers with values from memory that was never written, for --check uninitialised.

namespace emulator::ptx {

/// The read that a value comes from.
struct UndefinedRead {
  Site at;
  uint32_t warp;
  int lane;
  const char* memory;
  uint64_t bytes;
  Space space;
};

/// The registers of a warp, by slot (lower/value_flow.h).
class UndefinedValues {
 public:
  /// The lanes whose value is undefined.
  uint32_t lanes(uint32_t slot) const { return slot < slots_.size() ? slots_[slot].lanes : 0; }
  /// The number of the read that an undefined slot comes from.
  uint32_t read(uint32_t slot) const { return slots_[slot].read; }
  /// In `lanes` the value is undefined where `undefined` has a bit, else defined.
  void set(uint32_t slot, uint32_t lanes, uint32_t undefined, uint32_t read) {
    if (slot >= slots_.size()) {
      if ((lanes & undefined) == 0) return;
      slots_.resize(slot + 1);
    }
    Slot& s = slots_[slot];
    const uint32_t now = (s.lanes & ~lanes) | (undefined & lanes);
    count_ += static_cast<uint32_t>(now != 0) - static_cast<uint32_t>(s.lanes != 0);
    s.lanes = now;
    if (undefined & lanes) s.read = read;
  }
  void set_all_defined(uint32_t lanes) {
    for (uint32_t slot = 0; slot < slots_.size(); ++slot) set(slot, lanes, 0, 0);
  }
  bool any() const { return count_ != 0; }

 private:
  struct Slot {
    uint32_t lanes = 0, read = 0;
  };
  std::vector<Slot> slots_;
  uint32_t count_ = 0;  ///< slots with an undefined lane
};

}  // namespace emulator::ptx
