// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "kernels/runtime/kernel_cost.h"

namespace weft::benchmarks {

/// Calls of one kernel with the same sizes.
struct CountedCall {
  std::string kernel;
  std::string shapes;        ///< shapes of its tensors in the contract's order, vectors left out next to matrices
  int64_t count = 0;         ///< in the step
  kernels::KernelCost cost;  ///< cost of a call
};

/// Work whose kernels are counted: a training step, or one product.
struct CountedStep {
  std::string name;
  std::function<std::function<void()>()> make;  ///< builds it, returns the step
};

/// The kernels that a step calls once it runs evenly (the second call), in their order, without running any: tensors
/// take addresses and never touch them, so batches of any size can be counted on any machine. Not while something else
/// observes kernels.
std::vector<CountedCall> count_calls(const CountedStep& step);

/// Training steps of ResNet-50 (batch 256, 224x224) and ViT-B/16 (batch 256, 197 tokens) in bf16 with f32 master
/// weights, and square products. `tiny`: small sizes, for tests.
std::vector<CountedStep> roofline_steps(bool tiny);

}  // namespace weft::benchmarks
