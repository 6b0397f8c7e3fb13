// SPDX-License-Identifier: Apache-2.0
#include "core/ops/layers/rotary.h"

#include <algorithm>

#include "core/autograd.h"
#include "core/trace.h"
#include "kernels/contracts/rotary.h"

namespace weft {
namespace {

/// The gradient turns back, and the second gradient forth again.
Tensor turned(const Tensor& x, kernels::RotaryArguments arguments) {
  const Tensor from = x.stride(-1) == 1 ? x : x.contiguous();
  const Tensor y = Tensor::empty(x.sizes(), x.dtype(), x.device());
  kernels::rotary(y.queue(), y, from, arguments);
  arguments.back = !arguments.back;
  return differentiable(y, "rotary", {x}, [arguments](const Tensor& dy) { return Grads{turned(dy, arguments)}; });
}

}  // namespace

Tensor rotary(const Tensor& x, const RotaryOptions& options) {
  const OpScope scope("rotary");
  WEFT_CHECK(x.defined() && x.dim() == 4 && x.is_floating() && x.size(3) % 2 == 0 &&
                 x.size(3) <= 2 * kernels::kMostRotaryPairs,
             "rotary: expected a floating x [N, tokens, heads, D] with an even D of at most ",
             2 * kernels::kMostRotaryPairs, ", got ", x);
  WEFT_CHECK(static_cast<int64_t>(options.frequencies.size()) == x.size(3) / 2, "rotary: expected ", x.size(3) / 2,
             " frequencies for ", x, ", got ", options.frequencies.size());
  kernels::RotaryArguments arguments{.first = options.first, .scale = options.scale};
  std::copy(options.frequencies.begin(), options.frequencies.end(), arguments.frequencies);
  return turned(x, arguments);
}

}  // namespace weft
