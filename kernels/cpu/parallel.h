// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <omp.h>

#include <algorithm>
#include <cstdint>

namespace weft::kernels::cpu {

/// Below this many elements of work, waking the other threads costs more than it gains.
inline constexpr int64_t kParallelElements = 32768;

/// How many threads a loop over n items of `item_work` elements each should use.
inline int threads_for(int64_t n, int64_t item_work = 1) {
  if (n <= 1 || n * item_work <= kParallelElements || omp_in_parallel()) return 1;
  return static_cast<int>(std::min<int64_t>(omp_get_max_threads(), n));
}

/// Calls body(begin, end) so that the ranges cover [0, n) once, one contiguous range a thread. The body must not throw.
/// `item_work` says how many elements one item touches.
template <class Body>
void parallel_for(int64_t n, int64_t item_work, Body&& body) {
  if (n <= 0) return;
  const int threads = threads_for(n, item_work);
  if (threads == 1) return body(int64_t{0}, n);
#pragma omp parallel num_threads(threads)
  {
    const int64_t thread = omp_get_thread_num(), count = omp_get_num_threads();
    const int64_t begin = n * thread / count, end = n * (thread + 1) / count;
    if (begin < end) body(begin, end);
  }
}

/// A split of n items that does not depend on the number of threads, so that sums of partial results do not either.
struct Chunks {
  int64_t n, size, count;
  /// At most `most` chunks of at least `least` items.
  Chunks(int64_t items, int64_t least, int64_t most)
      : n(items), size(std::max(least, (items + most - 1) / most)), count((items + size - 1) / size) {}
  int64_t begin(int64_t chunk) const { return chunk * size; }
  int64_t end(int64_t chunk) const { return std::min(n, (chunk + 1) * size); }
};

}  // namespace weft::kernels::cpu
