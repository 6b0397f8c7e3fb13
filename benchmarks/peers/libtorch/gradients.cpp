// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/peers/libtorch/gradients.h"

namespace peer {

Work forward(const Op& op, double amount) {
  return {[op] {
            const c10::InferenceMode no_gradients;
            op.forward(op.inputs);
          },
          amount};
}

Work forward_backward(const Op& op, double amount) {
  const Tensor y = op.forward(op.inputs);
  const Tensor dy = y.numel() == 1 ? torch::ones_like(y) : torch::randn_like(y);
  for (Tensor input : op.inputs)
    if (input.is_floating_point()) input.requires_grad_();
  return {[op, dy] {
            for (const Tensor& input : op.inputs)
              if (input.requires_grad()) input.mutable_grad() = Tensor();
            op.forward(op.inputs).backward(dy);
          },
          amount};
}

void add_op_cases(Cases& cases, const std::string& name, Layout layout, const std::function<Op()>& make) {
  cases.push_back({in_layout(name + "_forward", layout), "ms", [=] { return forward(make()); }});
  cases.push_back({in_layout(name + "_forward_backward", layout), "ms", [=] { return forward_backward(make()); }});
}

}  // namespace peer
