// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/cases/gradients.h"

#include "core/autograd.h"
#include "core/ops/random.h"

namespace weft::benchmarks {

Work forward(const Target& target, const Op& op, double amount) {
  return work_on(
      target,
      [op] {
        const NoGrad no_grad;
        op.forward(op.inputs);
      },
      amount);
}

Work forward_backward(const Target& target, const Op& op, double amount) {
  Tensor dy;
  {
    const NoGrad no_grad;
    const Tensor y = op.forward(op.inputs);
    dy = y.numel() == 1 ? Tensor::ones(y.sizes(), y.dtype(), y.device())
                        : normal(y.sizes(), 0, 1, y.dtype(), y.device());
  }
  for (const Tensor& input : op.inputs)
    if (input.is_floating()) input.requires_grad_();
  return work_on(
      target,
      [op, dy] {
        for (const Tensor& input : op.inputs)
          if (input.requires_grad()) input.zero_grad();
        op.forward(op.inputs).backward(dy);
      },
      amount);
}

void add_op_cases(Cases& cases, const Target& target, const std::string& name, const std::function<Op()>& make) {
  cases.push_back({name + "_forward", "ms", [=] { return forward(target, make()); }});
  cases.push_back({name + "_forward_backward", "ms", [=] { return forward_backward(target, make()); }});
}

}  // namespace weft::benchmarks
