// SPDX-License-Identifier: Apache-2.0
#include "core/ops/copy.h"

#include <cmath>

#include "core/autograd.h"
#include "core/capture.h"
#include "core/ops/broadcast.h"
#include "core/promotion.h"
#include "core/tensor.h"
#include "core/trace.h"
#include "kernels/contracts/binary.h"
#include "kernels/contracts/copy.h"
#include "kernels/contracts/unary.h"
#include "kernels/runtime/runtime.h"
#include "kernels/runtime/transfer.h"

namespace weft {
namespace {

struct CastNode : Node {
  explicit CastNode(DType from_dtype) : from(from_dtype) {}
  bool hands_on(DType of_dy) const override { return of_dy == from; }
  DType from;
};

}  // namespace

Tensor recorded_cast(Tensor y, const Tensor& x) {
  if (!wants_gradient(x)) return y;
  auto backward = [from = x.dtype()](const Tensor& dy) { return Grads{cast(dy, from)}; };
  using Recorded = autograd_detail::LambdaNode<decltype(backward), CastNode>;
  autograd_detail::connect(y, Ref<Node>(new Recorded(backward, x.dtype())), "cast", &x, 1);
  return y;
}

DType gradient_dtype(const Tensor& x) {
  const AutogradMeta* const meta = x.impl()->autograd.get();
  const auto* const node = meta ? dynamic_cast<const CastNode*>(meta->node.get()) : nullptr;
  return node && size_of(x.dtype()) == 2 && node->from == DType::f32 ? DType::f32 : x.dtype();
}

Tensor cast(const Tensor& x, DType dtype) {
  WEFT_CHECK(x.defined(), "cast: expected a tensor, got none");
  if (x.dtype() == dtype) return x;
  const OpScope scope("cast");
  Tensor y = Tensor::empty(x.sizes(), dtype, x.device());
  kernels::copy(y.queue(), y, x);
  return is_floating(dtype) ? recorded_cast(y, x) : y;
}

Tensor Tensor::to(DType dtype) const { return cast(*this, dtype); }

namespace {

/// Dense bytes between two devices, of which one is the CPU or both are of the same kind.
void transfer(const Tensor& y, const Tensor& x) {
  const bool to_host = y.device().kind == DeviceKind::cpu, from_host = x.device().kind == DeviceKind::cpu;
  const Device device = to_host ? x.device() : y.device();
  refuse_while_capturing(to_host ? "copy to the host" : "copy from the host", device);
  const char* const name = to_host ? "copy_to_host" : from_host ? "copy_to_device" : "copy_between_devices";
  const kernels::View& from = x;
  kernels::transfer(current_queue(device), name, y.raw_data(), from.data, x.nbytes());
  // The host may read y at once, and it may free x.
  if (to_host || (from_host && !kernels::runtime(device.kind).stages_pageable_memory(device.index)))
    synchronize(device);
}

}  // namespace

Tensor Tensor::clone() const {
  const OpScope scope("clone");
  Tensor y = empty(sizes(), dtype(), device());
  kernels::copy(y.queue(), y, *this);
  return differentiable(y, "clone", {*this}, [](const Tensor& dy) { return Grads{dy}; });
}

Tensor Tensor::contiguous() const { return is_contiguous() ? *this : clone(); }

Tensor Tensor::to(Device target) const {
  if (device() == target) return *this;
  const OpScope scope("to");
  const bool direct =
      device().kind == DeviceKind::cpu || target.kind == DeviceKind::cpu || device().kind == target.kind;
  if (!direct) return to(Device{}).to(target);
  Tensor y = empty(sizes(), dtype(), target);
  if (numel() > 0) {
    const NoGrad no_grad;
    transfer(y, contiguous());
  }
  return differentiable(y, "to", {*this}, [from = device()](const Tensor& dy) { return Grads{dy.to(from)}; });
}

namespace {

void check(const char* op, const Tensor& x) {
  WEFT_CHECK(!wants_gradient(x), op, ": ", x,
             " needs a gradient and cannot be changed in place while gradients are recorded. "
             "Wrap the change in weft::NoGrad");
}

}  // namespace

const Tensor& Tensor::add_(const Tensor& other, Number alpha) const {
  const OpScope scope("add_");
  check("add_", *this);
  check_own_elements("add_", *this);
  WEFT_CHECK(other.defined() && other.device() == device(), "add_: expected a tensor on ", device(), ", got ", other);
  WEFT_CHECK(is_floating() || (!other.is_floating() && alpha.value() == std::floor(alpha.value())),
             "add_: expected whole numbers for ", *this, ", got ", alpha, " times ", other);
  if (!is_floating()) check_holds("add_", DType::i64, alpha);
  check_needs_no_gradient("add_", other);
  const NoGrad no_grad;
  const Tensor b = apart_from(*this, other.to(dtype()));
  WEFT_CHECK(broadcast_shapes("add_", sizes(), b.sizes()) == sizes(), "add_: ", other, " does not fit into ", *this);
  kernels::binary_forward(queue(), kernels::Binary::add, *this, *this, broadcast_view(b, sizes()), alpha);
  storage()->bump_version();
  return *this;
}

const Tensor& Tensor::mul_(Number factor) const {
  const OpScope scope("mul_");
  check("mul_", *this);
  check_own_elements("mul_", *this);
  WEFT_CHECK(is_floating() || factor.value() == std::floor(factor.value()), "mul_: expected a whole number for ", *this,
             ", got ", factor);
  check_holds("mul_", dtype(), factor);
  kernels::unary_forward(queue(), kernels::Unary::affine, *this, *this, {factor, 0});
  storage()->bump_version();
  return *this;
}

}  // namespace weft
