// SPDX-License-Identifier: Apache-2.0
#include "dist/fsdp/flat_shard.h"

#include <algorithm>
#include <utility>

#include "core/autograd.h"
#include "core/backward_pass.h"
#include "core/ops/binary.h"
#include "core/trace.h"
#include "kernels/contracts/binary.h"
#include "kernels/contracts/copy.h"

namespace weft::dist {
namespace {

int64_t aligned(int64_t count, int64_t alignment) { return (count + alignment - 1) / alignment * alignment; }

/// [length, 1, …] with the parameter's number of dimensions: rules by rank (no weight decay on vectors) still work.
Shape part_sizes(const Tensor& parameter, int64_t length) {
  Shape sizes{length};
  while (sizes.rank() < parameter.dim()) sizes.push_back(1);
  return sizes;
}

Tensor without_memory(const Tensor& like, Device device) {
  return Tensor::wrap(nullptr, like.sizes(), like.dtype(), device);
}

}  // namespace

Tensor place_in(const Ref<Storage>& storage, int64_t offset, const Shape& sizes, DType dtype) {
  kernels::View view;
  if (storage->data()) view.data = static_cast<char*>(storage->data()) + offset * static_cast<int64_t>(size_of(dtype));
  view.dtype = dtype;
  view.rank = sizes.rank();
  int64_t stride = 1;
  for (int d = view.rank - 1; d >= 0; --d) {
    view.sizes[d] = sizes[d];
    view.strides[d] = stride;
    stride *= std::max<int64_t>(sizes[d], 1);
  }
  return Tensor(make_ref<TensorImpl>(storage, view));
}

void DeferredWeights::attempt(const std::function<void(nn::DeferredInit&)>& work) const {
  if (!notes || !problem.empty()) return;
  try {
    work(*notes);
  } catch (const std::exception& error) {
    problem = error.what();
  }
}

void DeferredWeights::check(ProcessGroup& world) const {
  if (!notes) return;
  const std::vector<std::string> problems = world.all_gather_text(problem, "weights");
  const auto first = std::ranges::find_if(problems, [](const std::string& text) { return !text.empty(); });
  if (first != problems.end()) fail("fsdp: rank ", first - problems.begin(), ": ", *first);
}

FlatShard::FlatShard(std::string name, ProcessGroupPtr group, DType dtype, bool trained,
                     const std::vector<NamedTensor>& parameters, Offload offload)
    : name_(std::move(name)), group_(std::move(group)), dtype_(dtype), trained_(trained), offload_(offload) {
  is_resident_ = offload_ == Offload::none && group_->size() == 1 && dtype_ == parameters.front().tensor.dtype();
  int64_t end = 0;
  for (const auto& [path, tensor] : parameters) {
    parameters_.push_back({path, tensor, end, tensor.numel(), 0, 0, false, {}});
    end = aligned(end + tensor.numel(), FlatParameters::kAlignment);
  }
  numel_ = aligned(end, FlatParameters::kAlignment * group_->size());
  const int64_t first = group_->rank() * shard_numel(), last = first + shard_numel();
  for (ShardedParameter& p : parameters_) {
    p.begin = std::clamp<int64_t>(first - p.offset, 0, p.numel);
    p.length = std::clamp<int64_t>(last - p.offset, 0, p.numel) - p.begin;
  }
}

/// Each parameter by itself: this rank's part of a file, or what rank 0 sends.
void FlatShard::read_parts(ProcessGroup& world, const DeferredWeights& deferred) {
  for (const ShardedParameter& p : parameters_) {
    if (deferred.notes->reader(p.parameter)) {
      deferred.attempt([&](nn::DeferredInit& notes) { notes.read(p.parameter, p.begin, part(master_, p)); });
      continue;
    }
    Tensor whole = p.parameter.detach();
    if (world.rank() == 0) deferred.attempt([&](nn::DeferredInit& notes) { notes.write(p.parameter); });
    whole = world.rank() == 0 ? whole.to(device_) : Tensor::empty(whole.sizes(), whole.dtype(), device_);
    world.broadcast(whole, 0, {.name = "parameter " + p.name, .scale = {}})->wait();
    write(p, whole);
  }
}

void FlatShard::shard(ProcessGroup& world, Device device, const DeferredWeights& deferred) {
  const NoGrad no_grad;
  const OpScope scope("shard");
  const DType kept = parameters_.front().parameter.dtype();
  const Device home = offload_ == Offload::none ? device : Device{};
  device_ = device;
  const auto has_reader = [&](const ShardedParameter& p) { return deferred.notes->reader(p.parameter) != nullptr; };
  if (deferred.notes && group_->size() > 1 && std::ranges::any_of(parameters_, has_reader)) {
    master_ = Tensor::zeros({shard_numel()}, kept, home);
    read_parts(world, deferred);
  } else {
    const Tensor whole = Tensor::zeros({numel_}, kept, device);
    if (world.rank() == 0)
      for (const ShardedParameter& p : parameters_) {
        deferred.attempt([&](nn::DeferredInit& notes) { notes.write(p.parameter); });
        place_in(whole.storage(), p.offset, p.parameter.sizes(), kept).copy_(p.parameter.detach());
      }
    if (world.size() > 1) world.broadcast(whole, 0, {.name = "parameters " + name_, .scale = {}})->wait();
    master_ = whole.slice(0, group_->rank() * shard_numel(), shard_numel());
    master_ = home == device ? master_.clone() : master_.to(home);
  }
  for (size_t i = 0; i < parameters_.size(); ++i) {
    ShardedParameter& p = parameters_[i];
    p.shard = part(master_, p).reshape(part_sizes(p.parameter, p.length));
    set_trained(i, trained_);
    p.parameter.set_grad({});
    // Who holds the weights from before (a state dict) gets an error, not values that nobody trains.
    const Ref<Storage> before = p.parameter.storage();
    if (before->can_move() && before->bytes() == p.parameter.nbytes()) before->release();
    p.parameter.set_data(without_memory(p.parameter, device));
    p.parameter.impl()->autograd->is_sharded = true;
  }
  if (trained_) begin_training();
  if (is_resident_) set_master(master_);
}

void FlatShard::set_trained(size_t i, bool trained) {
  ShardedParameter& p = parameters_[i];
  p.parameter.requires_grad_(trained);  // allocates its autograd and autocast state
  p.shard.requires_grad_(trained);
  if (trained && !p.trained) ++trained_parameters_;
  if (!trained && p.trained) --trained_parameters_;
  p.trained = trained;
}

void FlatShard::begin_training() {
  const NoGrad no_grad;
  trained_ = true;
  for (const ShardedParameter& p : parameters_) p.shard.set_data(p.shard.detach().clone());
}

void FlatShard::set_master(const Tensor& master) {
  master_ = master.detach();
  on_device_ = {};  // versions of another storage say nothing
  if (!is_resident_) return;
  gathered_ = master_;
  const auto* start = static_cast<const char*>(master_.storage()->data());
  gathered_offset_ = (static_cast<const char*>(master_.raw_data()) - start) / static_cast<int64_t>(size_of(dtype_));
  bind();
}

Tensor FlatShard::part(const Tensor& buffer, const ShardedParameter& p) const {
  const int64_t first = group_->rank() * shard_numel();
  return buffer.slice(0, p.length == 0 ? 0 : p.offset + p.begin - first, p.length);
}

void FlatShard::write(const ShardedParameter& p, const Tensor& whole) const {
  const NoGrad no_grad;
  if (p.length == 0) return;
  part(master_, p).copy_(whole.detach().contiguous().reshape({p.numel}).slice(0, p.begin, p.length));
}

Tensor FlatShard::own_part() {
  if (offload_ != Offload::optimizer) return master_.to(device_);
  if (!on_device_.defined() || version_ != master_.storage()->version()) {
    on_device_ = {};  // its memory may serve the new one
    on_device_ = master_.to(dtype_).to(device_);
  }
  return on_device_;
}

void FlatShard::start_gather() {
  if (is_resident_ || holds_memory()) return;
  const NoGrad no_grad;
  const OpScope scope("gather_parameters");
  if (gathered_.defined())
    gathered_.storage()->acquire();
  else
    gathered_ = Tensor::empty({numel_}, dtype_, device_);
  gathered_ = place_in(gathered_.storage(), 0, {numel_}, dtype_);
  const Tensor part = own_part();
  // Backward must not use tensors that were saved before the values changed.
  if (version_ != master_.storage()->version()) gathered_.storage()->bump_version();
  version_ = master_.storage()->version();
  const Tensor own = gathered_.slice(0, group_->rank() * shard_numel(), shard_numel());
  kernels::copy(own.queue(), own, part);
  if (group_->size() > 1) work_ = group_->all_gather(gathered_, own, {.name = "gather " + name_, .scale = {}});
}

void FlatShard::finish_gather() {
  if (is_resident_) return;
  if (work_) work_->wait();
  work_ = nullptr;
  bind();
}

void FlatShard::free() {
  if (!holds_memory()) return;
  if (const WorkPtr work = std::exchange(work_, nullptr)) work->wait();
  gathered_.storage()->release();
  unbind();
}

void FlatShard::bind() {
  for (const ShardedParameter& p : parameters_) {
    const Tensor view = place_in(gathered_.storage(), gathered_offset_ + p.offset, p.parameter.sizes(), dtype_);
    if (dtype_ == p.parameter.dtype()) {
      p.parameter.set_data(view);
    } else {
      AutogradMeta& meta = *p.parameter.impl()->autograd;
      meta.compute_copy = view;
      meta.compute_version = p.parameter.storage()->version();
    }
  }
}

void FlatShard::unbind() {
  for (const ShardedParameter& p : parameters_) {
    if (dtype_ == p.parameter.dtype())
      p.parameter.set_data(place_in(gathered_.storage(), p.offset, p.parameter.sizes(), dtype_));
    else
      p.parameter.impl()->autograd->compute_copy = {};
  }
}

Tensor FlatShard::gather_full(const Tensor& part) const {
  const NoGrad no_grad;
  if (group_->size() == 1) return part.detach();
  const Tensor whole = Tensor::empty({numel_}, part.dtype(), device_);
  group_->all_gather(whole, part.contiguous().to(device_), {.name = "state " + name_, .scale = {}})->wait();
  return whole;
}

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
  buffer_ = Tensor::zeros({shard_->numel()}, shard_->master().dtype(), shard_->device());
}

void ShardGradient::prepare() {
  if (buffer_.defined()) return;
  make_buffer();
  for (size_t i = 0; i < taken_.size(); ++i) {
    const ShardedParameter& p = shard_->parameters()[i];
    if (!p.trained) continue;
    p.parameter.set_grad({});
    p.parameter.impl()->autograd->set_none(place(i));
    prepared_[i] = true;
  }
}

void ShardGradient::take(size_t i, const Tensor& weight) {
  const NoGrad no_grad;
  if (!buffer_.defined()) make_buffer();
  const ShardedParameter& p = shard_->parameters()[i];
  const Tensor gradient = p.parameter.grad(), own = place(i);
  if (gradient.storage().get() != buffer_.storage().get()) {
    own.add_(weight.defined() ? mul(gradient, weight) : gradient);
  } else if (weight.defined()) {
    kernels::binary_forward(own.queue(), kernels::Binary::mul, own, own, weight.expand(own.sizes()), 1);
  }
  p.parameter.set_grad({});  // the next gradient is written outside of the buffer and added
  prepared_[i] = false;
  arrived_ += p.trained && !taken_[i];
  taken_[i] = true;
}

bool ShardGradient::is_complete() const {
  if (arrived_ < shard_->trained_parameters()) return false;
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
  if (held_)
    for (const ShardedParameter& p : shard_->parameters()) p.shard.grad();  // no longer zero: drop_zeroed() looks at it
  arrived_ = 0;
  taken_.assign(taken_.size(), false);
}

void ShardGradient::drop_zeroed() {
  if (!held_) return;
  const NoGrad no_grad;
  const std::vector<ShardedParameter>& all = shard_->parameters();
  const auto is_zeroed = [](const ShardedParameter& p) { return p.shard.impl()->autograd->grad_is_zero; };
  if (std::ranges::all_of(all, is_zeroed)) return drop();
  for (size_t i = 0; i < all.size(); ++i) {
    if (!is_zeroed(all[i])) continue;
    place(i).zero_();
    all[i].shard.grad();
  }
}

bool ShardGradient::follows_on_device() const { return replicas_->size() > 1 && replicas_->backend() == "nccl"; }

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
  if (group->size() > 1) work_ = group->reduce_scatter(part_, reducing_, ReduceOp::sum, {.name = name, .scale = {}});
}

void ShardGradient::start_across() {
  const std::string name = "gradients " + shard_->name();
  if (work_ && follows_on_device())
    across_ = replicas_->all_reduce(part_, ReduceOp::sum, {.name = name, .scale = {}, .after = work_});
  else if (!work_ && replicas_->size() > 1)
    work_ = replicas_->all_reduce(part_, ReduceOp::sum, {.name = name, .scale = {}});
}

void ShardGradient::finish_reduce() {
  const NoGrad no_grad;
  const OpScope scope("reduce_gradients");
  if (const WorkPtr work = std::exchange(work_, nullptr)) work->wait();
  if (const WorkPtr across = std::exchange(across_, nullptr))
    across->wait();
  else if (shard_->group()->size() > 1 && replicas_->size() > 1)
    replicas_->all_reduce(part_, ReduceOp::sum, {.name = "gradients " + shard_->name(), .scale = {}})->wait();
  const auto counts_as_zero = [](const ShardedParameter& p) { return p.shard.impl()->autograd->grad_is_zero; };
  const std::vector<ShardedParameter>& all = shard_->parameters();
  if (std::all_of(all.begin(), all.end(), counts_as_zero)) {
    target_.copy_(part_);
    for (const ShardedParameter& p : all) p.shard.impl()->autograd->grad_is_zero = false;
  } else {
    for (const ShardedParameter& p : all) p.shard.grad();  // writes gradients that count as zero
    target_.add_(part_.to(target_.device()).to(target_.dtype()));
  }
  for (const ShardedParameter& p : all)
    if (p.trained) p.shard.impl()->autograd->grad_is_none = false;
  reducing_ = part_ = {};
}

void ShardGradient::drop() {
  if (const WorkPtr work = std::exchange(work_, nullptr)) work->wait();
  if (const WorkPtr across = std::exchange(across_, nullptr)) across->wait();
  reducing_ = part_ = {};
  arrived_ = 0;
  held_ = false;
  taken_.assign(taken_.size(), false);
  withdraw();
}

}  // namespace weft::dist
