// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>

#include "benchmarks/peers/libtorch/cases.h"

namespace peer {

struct Op {
  std::vector<Tensor> inputs;
  std::function<Tensor(const std::vector<Tensor>&)> forward;
};

/// The op without gradients; with backward, a gradient for every floating input.
Work forward(const Op& op, double amount = 1);
Work forward_backward(const Op& op, double amount = 1);

/// NAME_forward and NAME_forward_backward in milliseconds, in one layout.
void add_op_cases(Cases& cases, const std::string& name, Layout layout, const std::function<Op()>& make);

}  // namespace peer
