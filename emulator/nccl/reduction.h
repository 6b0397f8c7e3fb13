// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "emulator/nccl/operation.h"

namespace emulator::nccl {

/// The contribution of one rank: where its elements lie, and for a scaled sum the bits of its factor.
struct Part {
  const std::byte* data;
  uint64_t factor;
};

/// out[i] = parts[0][i] op parts[1][i] op ... in this order, whoever computes it: all ranks get the same bits. The
/// small floats accumulate in f32 and round once; integers wrap; max and min pass over a NaN as the hardware's do.
void reduce(const Descriptor& what, std::span<const Part> parts, std::byte* out, size_t count);

}  // namespace emulator::nccl
