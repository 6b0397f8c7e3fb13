// SPDX-License-Identifier: Apache-2.0
#include "dist/fsdp/fsdp.h"

#include <algorithm>
#include <utility>

#include "core/autograd.h"
#include "core/capture.h"
#include "core/ops/reduce.h"
#include "core/random.h"
#include "dist/ddp/agreement.h"
#include "dist/ddp/sync_batch_norm.h"
#include "dist/fsdp/fsdp_schedule.h"
#include "dist/fsdp/unit_layout.h"

namespace weft::dist {
namespace {

struct Counters : nn::Visitor {
  std::vector<int64_t*> found;
  void counter_at(const std::string&, int64_t& value) override { found.push_back(&value); }
};

bool is_low(DType dtype) { return dtype == DType::bf16 || dtype == DType::f16; }

}  // namespace

FSDP::FSDP(std::shared_ptr<nn::Module> model, const World& world, FsdpOptions options)
    : FSDP(std::move(model), world.group(), std::move(options)) {}

FSDP::FSDP(std::shared_ptr<nn::Module> model, ProcessGroupPtr group, FsdpOptions options)
    : model_(std::move(model)), group_(std::move(group)), options_(std::move(options)) {
  WEFT_CHECK(model_ && group_, "fsdp: expected a model and a group");
  check_options();
  check_replicas(*group_, *model_, "fsdp");
  check_same_model(*group_, *model_, "fsdp");
  make_groups();
  const Device device = options_.device.value_or(model_->device());
  std::vector<std::pair<nn::Module*, size_t>> owners;
  std::vector<std::unique_ptr<FsdpUnit>> units = make_units(owners);
  const DeferredWeights deferred{options_.deferred};
  if (group_->rank() == 0) deferred.attempt([](const nn::DeferredInit& notes) { notes.check_sources(); });
  for (const auto& unit : units)
    for (const auto& shard : unit->shards()) shard->shard(*group_, device, deferred);
  deferred.check(*group_);
  share_buffers(device);
  schedule_ = std::make_shared<FsdpSchedule>(options_, group_, device, std::move(units));
  schedule_->attach(owners, [this] { take_in_changes(); });
  std::map<std::string, Tensor> by_name;
  std::vector<std::pair<size_t, FlatShard*>> trained;
  for (size_t u = 0; u < this->units().size(); ++u)
    for (const auto& shard : this->units()[u]->shards()) {
      for (const ShardedParameter& p : shard->parameters()) by_name.emplace(p.name, p.shard);
      if (shard->trained()) trained.emplace_back(u, shard.get());
    }
  for (const NamedTensor& parameter : model_->parameters())  // in the order of the model
    shards_.push_back({parameter.name, by_name.at(parameter.name)});
  if (!trained.empty()) train(trained);
  schedule_->listen();
  set_dropout_rank(options_.same_dropout ? 0 : group_->rank());
  if (!options_.broadcast_buffers || group_->size() == 1) return;
  auto buffers = std::make_unique<FlatBuffers>(*model_);
  if (!buffers->empty()) schedule_->share_each_step(std::move(buffers));
}

FSDP::~FSDP() {
  schedule_->detach();
  for (const auto& unit : units())
    for (const auto& shard : unit->shards())
      for (const ShardedParameter& p : shard->parameters()) p.parameter.impl()->autograd->is_sharded = false;
}

void FSDP::check_options() const {
  const MixedPrecision& precision = options_.precision;
  for (const DType dtype : {precision.param, precision.buffer, precision.reduce.value_or(precision.param)})
    WEFT_CHECK(dtype == DType::f32 || is_low(dtype), "fsdp: mixed precision: expected f32, bf16 or f16, got ", dtype);
  WEFT_CHECK(options_.max_gathered >= 1, "fsdp: expected max_gathered of at least 1, got ", options_.max_gathered);
  if (options_.strategy != Sharding::hybrid_shard) {
    WEFT_CHECK(options_.shard_size == 0, "fsdp: shard_size belongs to hybrid_shard, the strategy is ",
               name(options_.strategy));
    return;
  }
  WEFT_CHECK(options_.shard_size > 0 && group_->size() % options_.shard_size == 0,
             "fsdp: hybrid_shard: a shard_size of ", options_.shard_size, " does not divide ", group_->size(),
             " ranks");
}

void FSDP::make_groups() {
  shard_group_ = group_;
  replicas_ = make_process_group_alone();
  if (options_.strategy == Sharding::no_shard) std::swap(shard_group_, replicas_);
  if (options_.strategy != Sharding::hybrid_shard) return;
  const int size = options_.shard_size, rank = group_->rank();
  shard_group_ = group_->split(rank / size, rank, "shards");
  replicas_ = group_->split(rank % size, rank, "replicas");
}

std::vector<std::unique_ptr<FsdpUnit>> FSDP::make_units(std::vector<std::pair<nn::Module*, size_t>>& owners) {
  UnitLayout layout = lay_out_units(*model_, options_.policy, options_.precision);
  const MixedPrecision& precision = options_.precision;
  std::vector<std::unique_ptr<FsdpUnit>> units;
  for (UnitLayout::Unit& unit : layout.units) {
    auto made = std::make_unique<FsdpUnit>(unit.name, unit.module);
    for (UnitLayout::Buffer& buffer : unit.buffers)
      made->add(std::make_unique<FlatShard>(unit.name + buffer.suffix(), shard_group_,
                                            buffer.low ? precision.param : buffer.parameters.front().tensor.dtype(),
                                            buffer.trained, buffer.parameters, options_.offload));
    units.push_back(std::move(made));
  }
  owners = std::move(layout.owners);
  return units;
}

void FSDP::train(const std::vector<std::pair<size_t, FlatShard*>>& by_unit) {
  const Device device = by_unit.front().second->device();
  std::vector<FlatSlice> slices;
  int64_t numel = flat_ ? flat_->numel() : 0;
  for (const auto& [u, shard] : by_unit) {
    const int64_t first = shard->group()->rank() * shard->shard_numel();
    for (const ShardedParameter& p : shard->parameters())
      slices.push_back(
          {p.name, p.shard, numel + std::clamp<int64_t>(p.offset - first, 0, shard->shard_numel()), p.length});
    places_.emplace(shard, numel);
    numel += shard->shard_numel();
  }
  if (flat_) {
    flat_->add(slices, numel);
  } else {
    flat_ = FlatParameters::of(slices, numel);
    flat_->divide({.is_divided = [](const Tensor&) { return true; },
                   .gather =
                       [group = shard_group_, device](const Tensor& own, const char* name) {
                         if (group->size() == 1) return own.reshape({1, own.numel()});
                         const Tensor all = Tensor::empty({group->size(), own.numel()}, own.dtype(), device);
                         group->all_gather(all, own.to(device), {.name = name, .scale = {}})->wait();
                         return all.to(own.device());
                       },
                   .others = shard_group_->others(),
                   .of_slices = true});
  }
  const Tensor gradient = flat_->gradient();
  for (const auto& [u, shard] : by_unit) {
    for (const ShardedParameter& p : shard->parameters()) p.shard.zero_grad();
    units()[u]->add_gradient(*shard, replicas_, options_.precision.reduce.value_or(options_.precision.param));
  }
  for (const auto& unit : units()) {
    for (const auto& shard : unit->shards())
      if (const auto place = places_.find(shard.get()); place != places_.end())
        shard->set_master(flat_->master().slice(0, place->second, shard->shard_numel()));
    for (const auto& of_unit : unit->gradients())
      of_unit->set_target(gradient.slice(0, places_.at(&of_unit->shard()), of_unit->shard().shard_numel()));
  }
}

void FSDP::take_in_changes() {
  bool changed = false;
  std::vector<bool> now;
  for (const auto& unit : units())
    for (const auto& shard : unit->shards())
      for (const ShardedParameter& p : shard->parameters()) {
        now.push_back(p.parameter.requires_grad() != p.trained ? !p.trained : p.shard.requires_grad());
        changed = changed || now.back() != p.trained;
      }
  if (!changed && capture_number() == 0) return;
  std::vector<NamedTensor> parameters;
  for (const auto& unit : units())
    for (const auto& shard : unit->shards())
      for (const ShardedParameter& p : shard->parameters()) parameters.push_back({p.name, p.parameter});
  if (capture_number() != 0)
    check_before_replay([parameters, now] {
      for (size_t i = 0; i < now.size(); ++i)
        WEFT_CHECK(parameters[i].tensor.requires_grad() == now[i], "fsdp: parameter '", parameters[i].name, "' was ",
                   now[i] ? "frozen" : "thawed", " after the step had been captured. Capture it anew");
    });
  if (!changed) return;
  refuse_while_capturing("fsdp: a parameter that was frozen or thawed", parameters.front().tensor.device());
  check_same_trained(*group_, parameters, now, "fsdp");
  std::vector<std::pair<size_t, FlatShard*>> thawed;
  size_t next = 0;
  for (size_t u = 0; u < units().size(); ++u)
    for (const auto& shard : units()[u]->shards()) {
      for (size_t i = 0; i < shard->parameters().size(); ++i) shard->set_trained(i, now[next++]);
      if (shard->trained() || shard->trained_parameters() == 0) continue;
      shard->begin_training();
      thawed.emplace_back(u, shard.get());
    }
  if (!thawed.empty()) train(thawed);
  schedule_->listen();
}

void FSDP::share_buffers(Device device) {
  const NoGrad no_grad;
  for (const auto& [path, module] : model_->modules()) {
    const std::vector<std::string>& kinds = options_.precision.kinds;
    if (!is_low(options_.precision.buffer) || std::find(kinds.begin(), kinds.end(), module->kind()) == kinds.end())
      continue;
    for (const NamedTensor& buffer : own_buffers(*module))
      if (buffer.tensor.is_floating()) buffer.tensor.set_data(buffer.tensor.detach().to(options_.precision.buffer));
  }
  for (const auto& [path, buffer] : model_->buffers()) {
    const Tensor dense = buffer.detach().contiguous().to(device);
    buffer.set_data(dense);
    if (group_->size() > 1 && dense.numel() > 0)
      group_->broadcast(dense, 0, {.name = "buffer " + path, .scale = {}})->wait();
    dense.storage()->bump_version();
  }
  Counters counters;
  model_->fields(counters);
  if (counters.found.empty() || group_->size() == 1) return;
  std::vector<int64_t> values;
  for (const int64_t* counter : counters.found) values.push_back(*counter);
  const Tensor all = Tensor::from(values, device);
  const WorkPtr work = group_->broadcast(all, 0, {.name = "counters", .scale = {}});
  work->wait();
  values = all.to_vector<int64_t>();
  work->wait();  // on a GPU only now an error shows
  for (size_t i = 0; i < values.size(); ++i) *counters.found[i] = values[i];
}

Tensor FSDP::forward(const Tensor& x) { return operator()(x); }

void FSDP::before_forward(int64_t samples) { schedule_->begin_round(grad_enabled(), samples); }
void FSDP::set_samples(int64_t samples) {
  WEFT_CHECK(samples >= 0, "fsdp: expected a number of samples, got ", samples);
  schedule_->set_samples(samples);
}
const std::vector<std::unique_ptr<FsdpUnit>>& FSDP::units() const { return schedule_->units(); }
size_t FSDP::gathered_bytes() const { return schedule_->gathered_bytes(); }
size_t FSDP::peak_gathered_bytes() const { return schedule_->peak_gathered_bytes(); }
void FSDP::free_gathered() { schedule_->free_all(); }

DType FSDP::forward_dtype() const {
  const DType low = options_.precision.param;
  return low == DType::f32 ? autocast_dtype().value_or(DType::f32) : low;
}

Tensor FSDP::cast_input(const Tensor& x) const {
  const MixedPrecision& precision = options_.precision;
  return is_low(precision.param) && precision.cast_forward_inputs && x.defined() && x.is_floating()
             ? x.to(precision.param)
             : x;
}

Tensor FSDP::clip_grad_norm(double max_norm) {
  WEFT_CHECK(max_norm > 0, "fsdp: clip_grad_norm: expected a positive norm, got ", max_norm);
  WEFT_CHECK(flat_, "fsdp: clip_grad_norm: no parameter is trained");
  return weft::clip_grad_norm(shards_, max_norm);
}

size_t FSDP::shard_bytes() const {
  size_t bytes = 0;
  for (const auto& unit : units())
    for (const auto& shard : unit->shards()) bytes += shard->master().nbytes();
  return bytes;
}

std::shared_ptr<void> FSDP::no_sync() {
  if (options_.sharded_accumulation) return nullptr;
  const bool previous = schedule_->reduces();
  schedule_->set_reduces(false);
  return {nullptr, [schedule = std::weak_ptr(schedule_), previous](void*) {
            if (const auto alive = schedule.lock()) alive->set_reduces(previous);
          }};
}

std::string FSDP::describe() const {
  return str("fsdp ", name(options_.strategy), ", ", units().size(), units().size() == 1 ? " unit" : " units",
             options_.offload == Offload::none ? "" : str(", ", name(options_.offload), " on the host"),
             describe_norms(*model_));
}

}  // namespace weft::dist
