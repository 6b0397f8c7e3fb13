// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/cuda/tensor_map.cuh"
#include "kernels/queue.h"

namespace weft::kernels::WEFT_DEVICE {

/// One wrong use of an instruction of Hopper each.
enum class Misuse {
  none,
  releases_more_registers,
  acquires_fewer_registers,
  barrier_zero,
  barrier_of_two_sizes,
  waits_without_arriving,
  arrives_twice_at_cluster,
  mbarrier_not_made,
  mbarrier_written_over,
  no_such_parity,
  bulk_load_misaligned,
  wrong_count_of_coordinates,
  map_of_freed_memory,
  load_never_waited_for,
  two_loads_to_one_place,
  sums_changed_without_fence,
  sums_written_before_wait,
  wgmma_never_waited_for,
  operand_out_of_bounds,
  operand_inside_a_pattern,
  registers_without_fence,
};

/// `data` has 4096 bytes of numbers; `map` is a [64, 32] bf16 tensor, loaded in boxes of [64, 8], 128-byte swizzle.
void misuse(const Queue& queue, Misuse misuse, const void* data, const TensorMap& map);

}  // namespace weft::kernels::WEFT_DEVICE
