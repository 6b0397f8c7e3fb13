// SPDX-License-Identifier: Apache-2.0
#include "kernels/copy.h"
#include "core/autograd.h"
#include "core/capture.h"
#include "core/tensor.h"
#include "core/trace.h"
#include "kernels/runtime.h"
#include "kernels/transfer.h"

namespace weft {
namespace {

/// Dense bytes between two devices, one of them the CPU or both of one kind.
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

}  // namespace weft
