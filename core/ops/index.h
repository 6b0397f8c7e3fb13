// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <variant>
#include <vector>

#include "core/tensor.h"

namespace weft {

/// `start:stop:step` of Python: negative ends count from the end of the dimension, ends beyond it are cut off, absent
/// ones are the dimension's. `Slice{}` is all of it. Errors: step < 1.
struct Slice {
  std::optional<Integer> start = {}, stop = {};
  Integer step = 1;
};
/// As many whole dimensions as are left over: `...` of Python.
struct Ellipsis {};
inline constexpr Ellipsis ellipsis;
/// A new dimension of size 1: `None` of Python.
struct NewAxis {};
inline constexpr NewAxis new_axis;

/// One part of an index: a number, a slice, `ellipsis`, `new_axis`, a tensor of positions (i64 or i32), a list of them
/// or a mask. A mask (bool) indexes as many dimensions as it has.
struct Index : std::variant<Integer, Slice, Tensor, Ellipsis, NewAxis, std::vector<int64_t>> {
  using variant::variant;
};

// Tensor::index: `x.index({0, Slice{2, -1}, ellipsis, mask})`, by PyTorch's rules. Numbers, slices and new axes give a
// view. Tensors are broadcast together; their sizes stand in the result where they stood, or in front if other parts
// are between them. A negative position counts from the end. Differentiable: repeated positions add up their gradients.
// Errors: more parts than dimensions, a mask of other sizes, a position out of range (of tensors on other devices than
// the CPU: at the next wait for the device). A mask waits for the device.

/// x with `values` at x.index(at), which they are broadcast to. Where a position occurs twice, the later value stays
/// and gets the gradient; `accumulate`: all are added to x (floating dtypes), in a fixed order. Errors: as index;
/// another dtype or device.
Tensor index_put(const Tensor& x, const std::vector<Index>& at, const Tensor& values, bool accumulate = false);
Tensor index_put(const Tensor& x, const std::vector<Index>& at, Number value);

}  // namespace weft
