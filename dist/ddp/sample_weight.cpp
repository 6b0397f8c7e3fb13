// SPDX-License-Identifier: Apache-2.0
#include "dist/ddp/sample_weight.h"

#include <utility>

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/rearrange.h"

namespace weft::dist {

void SampleWeight::begin(int64_t samples, Device device) {
  samples_ = samples;
  if (group_->size() == 1) return;
  const NoGrad no_grad;
  total_ = Tensor::full({1}, static_cast<double>(samples), DType::f64, device);
  work_ = group_->all_reduce(total_, ReduceOp::sum, {.name = "samples", .scale = {}});
}

void SampleWeight::wait() {
  if (const WorkPtr work = std::exchange(work_, nullptr)) work->wait();
}

void SampleWeight::keep(const Tensor& weight) {
  wait();
  weight_ = weight;
}

Tensor SampleWeight::get(DType dtype) {
  if (group_->size() == 1) return {};
  if (weight_.defined() && weight_.dtype() == dtype) return weight_;
  const NoGrad no_grad;
  wait();
  const Tensor own = Tensor::full({1}, static_cast<double>(samples_), DType::f64, total_.device());
  weight_ = div(own, maximum(total_, ones_like(total_))).to(dtype);  // all ranks may have none
  return weight_;
}

}  // namespace weft::dist
