// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "emulator/machine/tensor_box.h"

namespace emulator {

/// An operand in shared memory, as wgmma's matrix descriptor describes it (PTX ISA 9.0, "Matrix Descriptor Format").
struct MatrixDescriptor {
  uint32_t start;            ///< address in the block's shared memory
  uint32_t leading, stride;  ///< bytes
  uint32_t base_offset;
  SwizzleMode swizzle;

  static MatrixDescriptor decode(uint64_t bits) {
    const auto field = [bits](int from, int count) {
      return static_cast<uint32_t>((bits >> from) & ((uint64_t{1} << count) - 1));
    };
    return {field(0, 14) << 4, field(16, 14) << 4, field(32, 14) << 4, field(49, 3),
            static_cast<SwizzleMode>(field(62, 2))};
  }

  /// The address of the 16 bytes from byte `depth` of a line, for operands with K fastest.
  uint32_t along_depth(uint32_t line, uint32_t depth) const {
    if (swizzle == SwizzleMode::none)  // core matrices of 8 lines of 16 bytes
      return start + line % 8 * 16 + depth / 16 * leading + line / 8 * stride;
    const uint32_t bytes = static_cast<uint32_t>(swizzle_bytes(swizzle));
    return place(start + depth + line % 8 * bytes + line / 8 * stride);
  }
  /// The address of 8 two-byte elements from `line`, for operands with lines fastest.
  uint32_t along_lines(uint32_t line, uint32_t depth) const {
    if (swizzle == SwizzleMode::none) return start + depth % 8 * 16 + line / 8 * stride + depth / 8 * leading;
    const uint32_t bytes = static_cast<uint32_t>(swizzle_bytes(swizzle)), at = line * 2;
    return place(start + at % bytes + at / bytes * leading + depth % 8 * bytes + depth / 8 * stride);
  }
  /// The swizzle's pattern has 8 lines: whether the first element is in the line of the base offset.
  bool begins_in_pattern() const {
    if (swizzle == SwizzleMode::none) return true;
    const uint32_t mask = static_cast<uint32_t>(swizzle_bytes(swizzle)) / 16 - 1;
    return ((start >> 7) & mask) == (base_offset & mask);
  }

 private:
  uint32_t place(uint32_t address) const { return static_cast<uint32_t>(swizzled(address, swizzle, base_offset)); }
};

}  // namespace emulator
