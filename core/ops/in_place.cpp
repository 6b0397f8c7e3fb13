// SPDX-License-Identifier: Apache-2.0
#include "core/autograd.h"
#include "core/ops/broadcast.h"
#include "core/tensor.h"
#include "core/trace.h"
#include "kernels/binary.h"
#include "kernels/unary.h"

namespace weft {
namespace {

void check(const char* op, const Tensor& x) {
  WEFT_CHECK(!wants_gradient(x), op, ": ", x,
             " needs a gradient and cannot be changed in place while gradients are recorded. "
             "Wrap the change in weft::NoGrad");
}

}  // namespace

const Tensor& Tensor::add_(const Tensor& other, double alpha) const {
  const OpScope scope("add_");
  check("add_", *this);
  WEFT_CHECK(other.defined() && other.device() == device(), "add_: expected a tensor on ", device(), ", got ", other);
  const NoGrad no_grad;
  const Tensor b = other.to(dtype());
  WEFT_CHECK(broadcast_shapes("add_", sizes(), b.sizes()) == sizes(), "add_: ", other, " does not fit into ", *this);
  kernels::binary_forward(queue(), kernels::Binary::add, *this, *this, broadcast_view(b, sizes()), alpha);
  storage()->bump_version();
  return *this;
}

const Tensor& Tensor::mul_(double factor) const {
  const OpScope scope("mul_");
  check("mul_", *this);
  kernels::unary_forward(queue(), kernels::Unary::affine, *this, *this, {factor, 0});
  storage()->bump_version();
  return *this;
}

}  // namespace weft
