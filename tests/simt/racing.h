// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/half.h"
#include "kernels/queue.h"

namespace weft::kernels::WEFT_DEVICE {

/// Kernels with one planted bug each, which the checked build must report, and their repaired twins, which it must not.
enum class Race {
  no_barrier_before_reading,
  no_barrier_at_the_end_of_the_loop,
  no_barrier_after_the_wait,
  copy_waits_for_too_few,
  copy_never_waited_for_here,
  copy_source_overwritten,
  blocks_overlap,
  histogram_without_atomics,
  shared_histogram_without_atomics,
  atomic_read_plainly,
  warp_synchronous,
  shuffle_is_no_barrier,
  partial_mask,
  last_block_without_fence,
  last_block_without_atomic,
  other_threads_not_published,
  global_one_past_the_end,
  dynamic_shared_one_past_the_end,
  static_shared_one_past_the_end,
  uninitialised_global,
  uninitialised_shared,
};

/// `data` has 1024 ints, written by the host; `fresh` has 64 that nobody has written. One or two blocks of 64 threads.
void race(const Queue& queue, Race race, bool repaired, int* data, int* fresh);

/// What must not be reported: neighbours in one word written by different threads, warps and blocks; y[i] = 2 x[i] in
/// T.
template <class T>
void neighbours(const Queue& queue, T* y, const T* x, int n);
/// Sums n ints: the last block to finish adds up the others' results. Every thread fences, one thread counts.
void last_block_sum(const Queue& queue, int* sum, int* partial, unsigned* count, const int* x, int n, unsigned blocks);

}  // namespace weft::kernels::WEFT_DEVICE
