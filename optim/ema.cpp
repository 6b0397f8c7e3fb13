// SPDX-License-Identifier: Apache-2.0
#include "optim/ema.h"

#include "core/autograd.h"
#include "core/trace.h"
#include "kernels/contracts/optimizer.h"

namespace weft::optim {
namespace {

Tensor flattened(const Tensor& tensor) { return tensor.detach().reshape({tensor.numel()}); }

/// Errors unless `given` has the names and shapes of `mine`.
void check_fits(const StateDict& mine, const StateDict& given) {
  for (const auto& [name, tensor] : mine.tensors) {
    const Tensor other = given.tensor(name);
    WEFT_CHECK(other.defined(), "Ema: the saved state does not fit; missing: ", name);
    WEFT_CHECK(other.sizes() == tensor.sizes(), "Ema: the saved state does not fit; wrong shape: ", name, " (expected ",
               tensor.sizes(), ", got ", other.sizes(), ")");
  }
  for (const NamedTensor& entry : given.tensors)
    WEFT_CHECK(mine.tensor(entry.name).defined(), "Ema: the saved state does not fit; unexpected: ", entry.name);
}

}  // namespace

Ema::Ema(std::shared_ptr<FlatParameters> flat, const std::vector<NamedTensor>& buffers, EmaOptions options)
    : flat_(std::move(flat)), alive_(std::make_shared<int>()), options_(options) {
  WEFT_CHECK(flat_, "Ema: expected flat weights, got none");
  WEFT_CHECK(options.decay >= 0 && options.decay < 1, "Ema: expected a decay in [0, 1), got ", options.decay);
  flat_->check_open("Ema");
  const NoGrad no_grad;
  average_ = flat_->master().detach().clone();
  flat_->on_add([this, alive = std::weak_ptr<int>(alive_)] {
    if (!alive.expired()) take_in_new();
  });
  count_ = Tensor::zeros({1}, flat_->dtype(), flat_->device());
  one_ = Tensor::ones({1}, flat_->dtype(), flat_->device());
  for (const NamedTensor& buffer : buffers)
    if (buffer.tensor.dtype() == flat_->dtype() && buffer.tensor.is_contiguous())
      buffers_.push_back({buffer, buffer.tensor.detach().clone()});
}

void Ema::check_not_swapped(const char* call) const {
  WEFT_CHECK(!is_swapped_, "Ema: ", call, ": the model has the averages now");
}

void Ema::update() {
  const OpScope scope("Ema");
  check_not_swapped("update");
  const NoGrad no_grad;
  const kernels::EmaArguments how{.decay = options_.decay, .warmup = options_.warmup};
  kernels::ema_step(average_.queue(), average_, flat_->master(), count_, how);
  for (const Buffer& buffer : buffers_)
    kernels::ema_step(average_.queue(), flattened(buffer.average), flattened(buffer.own.tensor), count_, how);
  count_.add_(one_);
}

void Ema::take_in_new() {
  const int64_t known = average_.numel(), more = flat_->numel() - known;
  FlatParameters::lengthen(average_, flat_->numel());
  average_.slice(0, known, more).copy_(flat_->master().slice(0, known, more));
}

int64_t Ema::updates() const { return static_cast<int64_t>(count_.item()); }

void Ema::swap() {
  const OpScope scope("Ema");
  const NoGrad no_grad;
  if (!is_swapped_) flat_->check_bound("Ema");  // not on the way back, which is in a destructor
  kernels::exchange(average_.queue(), average_, flat_->master());
  flat_->weights_changed(/*copied=*/false);
  for (const Buffer& buffer : buffers_) {
    kernels::exchange(average_.queue(), flattened(buffer.average), flattened(buffer.own.tensor));
    buffer.own.tensor.storage()->bump_version();
  }
  is_swapped_ = !is_swapped_;
  if (is_swapped_)
    flat_->close("the model has an Ema's averages now. End swapped() first");
  else
    flat_->open();
}

void Ema::adopt() {
  check_not_swapped("adopt");
  const NoGrad no_grad;
  flat_->check_bound("Ema");
  flat_->master().copy_(average_);
  flat_->weights_changed(/*copied=*/false);
  for (const Buffer& buffer : buffers_) buffer.own.tensor.copy_(buffer.average);
}

StateDict Ema::state_dict() const {
  check_not_swapped("state_dict");
  StateDict dict;
  for (const FlatSlice& slice : flat_->slices())
    dict.tensors.push_back({slice.name + ".ema", FlatParameters::place(average_, slice)});
  dict.scalars.push_back({"updates", static_cast<double>(updates())});
  return dict;
}

StateDict Ema::buffers() const {
  StateDict dict;
  for (const Buffer& buffer : buffers_) dict.tensors.push_back({buffer.own.name + ".ema", buffer.average});
  return dict;
}

void Ema::load_state_dict(const StateDict& weights, const StateDict& of_buffers) {
  const NoGrad no_grad;
  const StateDict mine = state_dict(), my_buffers = buffers();
  check_fits(mine, weights);
  check_fits(my_buffers, of_buffers);
  const double updates = weights.scalar("updates");
  for (const auto& [name, tensor] : mine.tensors) tensor.copy_(weights.tensor(name));
  for (const auto& [name, tensor] : my_buffers.tensors) tensor.copy_(of_buffers.tensor(name));
  count_.fill_(updates);
}

}  // namespace weft::optim
