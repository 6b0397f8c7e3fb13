// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <vector>

#include "core/tensor.h"

namespace weft {

struct CheckGradientOptions {
  uint64_t seed = 0;  ///< for weights, probes, and the function's own draws (dropout)
  int probes = 8;     ///< per input: three in directions that change every element, the others in one element
};

/// Holds the gradients of your own op against slopes of the function itself, by central differences:
///   check_gradient([](const auto& x) { return softshrink(x[0], 0.5f); }, {normal({4, 33}, 0, 1, DType::f64).requires_grad_()});
/// `inputs`: f64, or f32 where a kernel takes nothing else; those that require a gradient are looked at. `function`
/// must be smooth near them, and give the same at each call after manual_seed(), which is called before each.
/// Tolerance: 2e-6 (f64, differences over 2e-6) or 2e-3 (f32, over 8e-3) of 1 + the sum of the terms' absolute values +
/// the largest gradient. Errors: weft::Error that names the input and both slopes; no input requires a gradient;
/// another dtype.
void check_gradient(const std::function<Tensor(const std::vector<Tensor>&)>& function,
                    const std::vector<Tensor>& inputs, CheckGradientOptions options = {});

}  // namespace weft
