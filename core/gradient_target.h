// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"
#include "kernels/activation.h"

namespace weft {

/// For the backward of an op: a tensor for the gradient of its input number `input`, dense, to be written (not read)
/// and returned. It is the leaf's own grad() memory where this gradient is the only one of the pass and nothing is to
/// be added to, so that large weights' gradients are written once, in their place in the flat buffer; else new memory.
Tensor gradient_target(size_t input, const Shape& sizes, DType dtype, Device device);

/// For the backward of an op whose kernel can add: the sum of the gradients that have come for its input number `input`
/// in this pass so far, where that is a dense tensor of these sizes and dtype; else undefined. It is taken: the
/// backward must return its own gradient plus it, and so spares the pass that would have added them.
Tensor arrived_gradient(size_t input, const Shape& sizes, DType dtype);

/// What take_activation found: nothing, or f and what it was applied to, dense.
struct TakenActivation {
  kernels::Activation f = kernels::Activation::none;
  Tensor saved;
};

/// For the backward of a product whose kernel can multiply the gradient of input number `input`, in `dtype`, by the
/// derivative of the activation that made this input: that activation, where the op behind it is one of
/// core/activation_node.h, the gradient is the only one of the pass and no hook wants to see it; else none. It is
/// taken: the backward must return the product times f'(saved).
TakenActivation take_activation(size_t input, DType dtype);

}  // namespace weft
