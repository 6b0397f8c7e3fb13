// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tests/support/random_values.h"

namespace weft::tests {

/// A view of the sizes over an array, in a layout that a tensor may have in memory. `places` has the index in the array
/// of each element in row-major order.
struct Strided {
  kernels::View view;
  std::vector<int64_t> places;

  double at(const std::vector<double>& memory, size_t i) const { return memory[static_cast<size_t>(places[i])]; }
};

enum class Layout { dense, permuted, gaps, broadcast, columns, stretched };

/// How many elements the array of `strided` needs at most.
inline int64_t memory_for(const Sizes& sizes) {
  int64_t n = 1;
  for (const int64_t size : sizes) n *= 2 * size;
  return n;
}

/// Rows of columns in the layout: reversed dimensions, every second element, a first dimension of stride 0, the middle
/// half of wider rows, or a last dimension of stride 0.
inline Strided strided(const DeviceArray& array, const Sizes& sizes, Layout layout) {
  Strided result;
  kernels::View& view = result.view;
  view = {array.view().data, array.view().dtype, static_cast<int>(sizes.size()), {}, {}};
  int64_t stride = layout == Layout::gaps ? 2 : 1, first = 0;
  for (int i = 0; i < view.rank; ++i) {
    const int d = layout == Layout::permuted ? i : view.rank - 1 - i;
    view.sizes[d] = sizes[static_cast<size_t>(d)];
    view.strides[d] = layout == Layout::broadcast && d == 0 ? 0 : stride;
    stride *= layout == Layout::gaps || (layout == Layout::columns && i == 0) ? 2 * view.sizes[d] : view.sizes[d];
  }
  if (layout == Layout::columns && view.rank > 0) first = view.sizes[view.rank - 1] / 2;
  if (layout == Layout::stretched && view.rank > 0) view.strides[view.rank - 1] = 0;
  view.data = static_cast<char*>(view.data) + first * static_cast<int64_t>(size_of(view.dtype));
  for (int64_t i = 0; i < view.numel(); ++i) {
    int64_t rest = i, place = first;
    for (int d = view.rank - 1; d >= 0; --d) {
      place += rest % view.sizes[d] * view.strides[d];
      rest /= view.sizes[d];
    }
    result.places.push_back(place);
  }
  return result;
}

}  // namespace weft::tests
