// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>

#include "kernels/view.h"

namespace weft::kernels::cpu {

/// The loop nest over N views of equal sizes: dimensions of size 1 dropped, ordered by the first view's strides, and
/// neighbours merged wherever every view allows it. A dense elementwise call becomes one loop.
template <int N>
struct Nest {
  int rank = 0;  ///< at least 1 after construction
  std::array<int64_t, kMaxRank> sizes{};
  std::array<std::array<int64_t, N>, kMaxRank> strides{};
  int64_t total = 1;

  explicit Nest(const std::array<const View*, N>& views) {
    const View& first = *views[0];
    for (int d = 0; d < first.rank; ++d) {
      total *= first.sizes[d];
      if (first.sizes[d] == 1) continue;
      int at = rank++;
      for (; at > 0 && strides[at - 1][0] < first.strides[d]; --at) {
        sizes[at] = sizes[at - 1];
        strides[at] = strides[at - 1];
      }
      sizes[at] = first.sizes[d];
      for (int v = 0; v < N; ++v) strides[at][v] = views[v]->strides[d];
    }
    merge();
  }

  int64_t inner() const { return sizes[rank - 1]; }
  const std::array<int64_t, N>& inner_strides() const { return strides[rank - 1]; }

  /// Walks the elements [begin, end) of the nest in order: body(offsets, n) for each run of n elements along the
  /// innermost dimension, with the offset of its first element in every view.
  template <class Body>
  void walk(int64_t begin, int64_t end, Body&& body) const {
    if (begin >= end) return;  // sizes may be 0
    std::array<int64_t, kMaxRank> position{};
    std::array<int64_t, N> offset{};
    int64_t rest = begin;
    for (int d = rank - 1; d >= 0; --d) {
      position[d] = rest % sizes[d];
      rest /= sizes[d];
      for (int v = 0; v < N; ++v) offset[v] += position[d] * strides[d][v];
    }
    while (begin < end) {
      const int64_t n = std::min(end - begin, sizes[rank - 1] - position[rank - 1]);
      body(offset, n);
      begin += n;
      for (int v = 0; v < N; ++v) offset[v] -= position[rank - 1] * strides[rank - 1][v];
      position[rank - 1] = 0;
      for (int d = rank - 2; d >= 0; --d) {
        for (int v = 0; v < N; ++v) offset[v] += strides[d][v];
        if (++position[d] < sizes[d]) break;
        for (int v = 0; v < N; ++v) offset[v] -= sizes[d] * strides[d][v];
        position[d] = 0;
      }
    }
  }

 private:
  void merge() {
    if (rank == 0) {
      rank = 1;
      sizes[0] = total;
      return;
    }
    int last = 0;
    for (int d = 1; d < rank; ++d) {
      bool joins = true;
      for (int v = 0; v < N; ++v) joins &= strides[last][v] == sizes[d] * strides[d][v];
      const int64_t size = sizes[d];  // d may be the entry that is written next
      if (!joins) sizes[++last] = 1;
      sizes[last] *= size;
      strides[last] = strides[d];
    }
    rank = last + 1;
  }
};

}  // namespace weft::kernels::cpu
