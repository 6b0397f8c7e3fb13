// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/queue.h"

namespace weft::kernels::WEFT_DEVICE {

/// Kernels with one planted bug each; the emulator must report it.
enum class Bug {
  none,
  return_before_barrier,
  two_barriers,
  half_warp_calls_full_shuffle,
  mask_without_the_caller,
  mask_names_exited_lanes,
  mask_names_missing_lanes,
  two_collectives_with_one_mask,
  shuffle_from_outside_the_mask,
  barrier_against_collective,
  stack_overflow,
  huge_local_array,
  null_pointer,
  far_out_of_bounds,
  integer_division_by_zero,
  misaligned_vector,
  trap,
  cp_async_to_global,
  cp_async_misaligned,
  // Only the checked build reports what follows.
  one_past_the_end,
  one_before_the_beginning,
  host_pointer,
  shared_past_the_end,
  dynamic_shared_past_the_end,
  uninitialised_global,
  uninitialised_shared,
  uninitialised_dynamic_shared,
  atomic_out_of_bounds,
};

/// `data` has 64 ints. The block has `threads` threads and 64 bytes of dynamic shared memory.
void plant(const Queue& queue, Bug bug, int* data, unsigned threads = 64);
/// Asks for more dynamic shared memory than there is.
void plant_shared(const Queue& queue, int* data, unsigned bytes);

}  // namespace weft::kernels::WEFT_DEVICE
