// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <utility>

#include "core/autograd.h"
#include "kernels/activation.h"

// An activation in front of a product, y = f(s), z = y w^T: in the backward the product's kernel can multiply dy by
// f'(s) while it writes it, and spare a pass over dy. So the op that made y says what f and s were; the backward of the
// product asks for them by take_activation (core/gradient_target.h).

namespace weft {

/// The node of an op that ends in y = f(saved), elementwise.
class ActivationNode : public Node {
 public:
  ActivationNode(kernels::Activation f, const Tensor& saved) : f_(f), saved_(saved) {}

  kernels::Activation f() const { return f_; }
  const Saved& saved() const { return saved_; }
  /// In this pass dy comes multiplied by f'(saved). The pass takes it back at its end.
  void set_taken(bool taken) { taken_ = taken; }

 protected:
  kernels::Activation f_;
  Saved saved_;
  bool taken_ = false;
};

namespace autograd_detail {

template <class Backward>
class LambdaActivationNode final : public ActivationNode {
 public:
  LambdaActivationNode(kernels::Activation f, const Tensor& saved, Backward backward)
      : ActivationNode(f, saved), backward_(std::move(backward)) {}
  Grads backward(const Tensor& dy) override {
    WEFT_CHECK(backward_.has_value(), op,
               ": backward a second time through the same graph. Pass retain_graph = true to the first backward");
    return (*backward_)(dy, taken_);
  }
  void release() override {
    backward_.reset();
    saved_ = {};
  }

 private:
  std::optional<Backward> backward_;
};

}  // namespace autograd_detail

/// As differentiable(), for an op that ends in y = f(saved); `saved` lies as y does, reshaped or not, and for relu may
/// be y. The lambda gets dy, and whether that has been multiplied by f'(saved) already.
template <class Backward>
Tensor differentiable_activation(Tensor y, const char* op, std::initializer_list<Tensor> inputs, kernels::Activation f,
                                 const Tensor& saved, Backward&& backward) {
  if (grad_enabled() && autograd_detail::any_requires_grad(inputs)) {
    using Lambda = autograd_detail::LambdaActivationNode<std::decay_t<Backward>>;
    autograd_detail::connect(y, Ref<Node>(new Lambda(f, saved, std::forward<Backward>(backward))), op,
                             std::data(inputs), inputs.size());
  }
  return y;
}

}  // namespace weft
