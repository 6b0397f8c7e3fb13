// SPDX-License-Identifier: Apache-2.0
#include "dist/fsdp/shard_gradient.h"

#include <algorithm>
#include <utility>

#include "core/autograd.h"
#include "core/backward_pass.h"
#include "core/ops/binary.h"
#include "core/trace.h"
#include "kernels/binary.h"

namespace weft::dist {

ShardGradient::ShardGradient(FlatShard& shard, ProcessGroupPtr replicas, DType reduce)
    : shard_(&shard),
      replicas_(std::move(replicas)),
      reduce_(reduce),
      taken_(shard.parameters().size()),
      prepared_(shard.parameters().size()) {}

Tensor ShardGradient::place(size_t i) const {
  const ShardedParameter& p = shard_->parameters()[i];
  return place_in(buffer_.storage(), p.offset, p.parameter.sizes(), buffer_.dtype());
}

void ShardGradient::make_buffer() {
  const OpScope scope("gradient_buffer");
  buffer_ = Tensor::zeros({shard_->numel()}, shard_->master().dtype(), shard_->master().device());
}

void ShardGradient::prepare() {
  if (buffer_.defined()) return;
  make_buffer();
  for (size_t i = 0; i < taken_.size(); ++i) {
    const Tensor& parameter = shard_->parameters()[i].parameter;
    parameter.set_grad(place(i));
    parameter.zero_grad();
    prepared_[i] = true;
  }
}

void ShardGradient::take(size_t i, const Tensor& weight) {
  const NoGrad no_grad;
  if (!buffer_.defined()) make_buffer();
  const Tensor& parameter = shard_->parameters()[i].parameter;
  const Tensor gradient = parameter.grad(), own = place(i);
  if (gradient.storage().get() != buffer_.storage().get()) {
    own.add_(weight.defined() ? mul(gradient, weight) : gradient);
  } else if (weight.defined()) {
    kernels::binary_forward(own.queue(), kernels::Binary::mul, own, own, weight.expand(own.sizes()), 1);
  }
  parameter.set_grad({});  // the next gradient is written outside of the buffer and added
  prepared_[i] = false;
  arrived_ += !taken_[i];
  taken_[i] = true;
}

bool ShardGradient::is_complete() const {
  if (arrived_ < taken_.size()) return false;
  const std::vector<ShardedParameter>& all = shard_->parameters();
  return std::none_of(all.begin(), all.end(), [](const ShardedParameter& p) { return gradient_pending(p.parameter); });
}

void ShardGradient::withdraw() {
  for (size_t i = 0; i < prepared_.size(); ++i) {
    if (!prepared_[i]) continue;
    shard_->parameters()[i].parameter.set_grad({});
    prepared_[i] = false;
  }
  if (!has_any()) buffer_ = {};
}

void ShardGradient::hold() {
  withdraw();
  held_ = has_any();
  arrived_ = 0;
  taken_.assign(taken_.size(), false);
}

void ShardGradient::start_reduce() {
  const NoGrad no_grad;
  const OpScope scope("reduce_gradients");
  withdraw();
  const ProcessGroupPtr& group = shard_->group();
  reducing_ = std::exchange(buffer_, {}).to(reduce_);
  arrived_ = 0;
  held_ = false;
  taken_.assign(taken_.size(), false);
  part_ = reducing_.slice(0, group->rank() * shard_->shard_numel(), shard_->shard_numel());
  const std::string name = "gradients " + shard_->name();
  if (group->size() > 1)
    work_ = group->reduce_scatter(part_, reducing_, ReduceOp::sum, {.name = name, .scale = {}});
  else if (replicas_->size() > 1)
    work_ = replicas_->all_reduce(part_, ReduceOp::sum, {.name = name, .scale = {}});
}

void ShardGradient::finish_reduce() {
  const NoGrad no_grad;
  const OpScope scope("reduce_gradients");
  if (const WorkPtr work = std::exchange(work_, nullptr)) work->wait();
  if (shard_->group()->size() > 1 && replicas_->size() > 1)
    replicas_->all_reduce(part_, ReduceOp::sum, {.name = "gradients " + shard_->name(), .scale = {}})->wait();
  const auto counts_as_zero = [](const ShardedParameter& p) { return p.shard.impl()->autograd->grad_is_zero; };
  const std::vector<ShardedParameter>& all = shard_->parameters();
  if (std::all_of(all.begin(), all.end(), counts_as_zero)) {
    target_.copy_(part_);
    for (const ShardedParameter& p : all) p.shard.impl()->autograd->grad_is_zero = false;
  } else {
    for (const ShardedParameter& p : all) p.shard.grad();  // writes gradients that count as zero
    target_.add_(part_.to(target_.dtype()));
  }
  reducing_ = part_ = {};
}

void ShardGradient::drop() {
  if (const WorkPtr work = std::exchange(work_, nullptr)) work->wait();
  reducing_ = part_ = {};
  arrived_ = 0;
  held_ = false;
  taken_.assign(taken_.size(), false);
  withdraw();
}

}  // namespace weft::dist
