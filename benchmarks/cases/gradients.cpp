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

void add_op_cases(Cases& cases, const Target& target, const std::string& name, const std::function<Op()>& make,
                  const Told& told) {
  const double both = told.amount == 1 ? 1 : 3 * told.amount;
  cases.push_back({name + "_forward", told.unit, [=] { return forward(target, make(), told.amount); }});
  cases.push_back({name + "_forward_backward", told.unit, [=] { return forward_backward(target, make(), both); }});
}

}  // namespace weft::benchmarks
