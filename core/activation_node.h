// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <utility>

#include "core/autograd.h"
#include "core/backward_context.h"

// An activation before a product, y = f(s), z = y w^T: in the backward the product's kernel can multiply dy by f'(s)
// while it writes it, and spare a pass over dy. So the op that made y says what f and s were; the backward of the
// product asks for them by BackwardContext::take_activation.

namespace weft {

/// The node of an op that ends in y = f(saved), elementwise.
class ActivationNode : public Node {
 public:
  ActivationNode(kernels::Activation f, const Tensor& saved) : f_(f), saved_(saved) {}

  kernels::Activation f() const { return f_; }
  const Saved& saved() const { return saved_; }
  void release() override { saved_ = {}; }

 private:
  kernels::Activation f_;
  Saved saved_;
};

/// As differentiable(), for an op that ends in y = f(saved); `saved` lies as y does, reshaped or not, and for relu may
/// be y. The lambda asks context.activation_is_taken().
template <class Backward>
Tensor differentiable_activation(Tensor y, const char* op, std::initializer_list<Tensor> inputs, kernels::Activation f,
                                 const Tensor& saved, Backward&& backward) {
  if (grad_enabled() && autograd_detail::any_requires_grad(inputs)) {
    using Lambda = autograd_detail::LambdaNode<std::decay_t<Backward>, ActivationNode>;
    autograd_detail::connect(y, Ref<Node>(new Lambda(std::forward<Backward>(backward), f, saved)), op,
                             std::data(inputs), inputs.size());
  }
  return y;
}

}  // namespace weft
