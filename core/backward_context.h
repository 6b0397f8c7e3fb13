// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <utility>
#include <vector>

#include "core/autograd.h"
#include "core/tensor.h"
#include "kernels/contracts/activation.h"

namespace weft {

/// The result of BackwardContext::take_activation: nothing, or f and its dense operand.
struct TakenActivation {
  kernels::Activation f = kernels::Activation::none;
  Tensor saved;
};

/// An op's backward may ask these of the pass that runs it. The answers spare passes over memory; a backward that
/// needs none of them takes dy alone. `input` is the number of an input of the op.
class BackwardContext {
 public:
  /// A tensor for the gradient of the input, dense, to be written (not read) and returned. If no other gradient of the
  /// pass reaches the leaf and grad() is none, the memory is the leaf's own grad(). Large weights' gradients are then
  /// written once, into the flat buffer. Else the memory is new.
  virtual Tensor gradient_target(size_t input, const Shape& sizes, DType dtype, Device device) = 0;

  /// For a kernel that can add: the sum of the input's gradients in this pass so far, if dense and with these sizes and
  /// dtype; else undefined. The caller takes this sum: the backward must return its own gradient plus the sum, and so
  /// spares a separate addition.
  virtual Tensor arrived_gradient(size_t input, const Shape& sizes, DType dtype) = 0;

  /// For a GEMM whose kernel can multiply the gradient of the input, in `dtype`, by the derivative of the activation
  /// that made this input. Returns that activation if an ActivationNode made the input, no other gradient of the pass
  /// reaches the input, and no hook wants it; else none. The caller takes the activation: the backward must return the
  /// product times f'(saved).
  virtual TakenActivation take_activation(size_t input, DType dtype) = 0;

  /// Nobody runs this backward again: a saved tensor that nobody else holds may be overwritten.
  virtual bool is_last() const = 0;

  /// For an ActivationNode: dy comes multiplied by f'(saved), because the product that made dy has taken the
  /// activation.
  virtual bool activation_is_taken() const = 0;

  /// Whether the gradient of the input is used: autograd::grad() asks for few of them. It may be returned anyway.
  virtual bool wants(size_t input) const = 0;

  /// With create_graph: zeros with the history of the input, for ops that have not saved it. `sizes` hold the elements
  /// of the input. with_history_of() gives values such a history.
  virtual Tensor history(size_t input, const Shape& sizes, DType dtype, Device device) const = 0;

  /// False in autograd::grad() and with create_graph, where a gradient that went into a leaf's grad() at once would be
  /// lost.
  virtual bool fills_leaves() const = 0;

 protected:
  ~BackwardContext() = default;
};

/// `value` with the history of x, as if it were a copy of x.
Tensor with_history_of(const Tensor& x, const Tensor& value);

/// An error with create_graph, which names the op: for backwards without a second derivative that must not begin. The
/// others run, and end in the same error.
void refuse_create_graph(const char* op);

/// For a fused op in a backward with create_graph: `composed` computes the op's result from the same inputs by ops that
/// can be differentiated twice; the gradients of `inputs`, those of the op's inputs of the same numbers, follow from
/// its history. The gradient of an input that wants() does not name is undefined.
Grads gradients_by_ops(const std::function<Tensor(const std::vector<Tensor>&)>& composed,
                       const std::vector<Tensor>& inputs, const Tensor& dy, const BackwardContext& context);

// An activation before a product, y = f(s), z = y w^T: in the backward the product's kernel can multiply dy by f'(s) in
// its epilogue, and spare a pass over dy. So the op that made y names f and s; the backward of the
// product asks for them by BackwardContext::take_activation.

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
