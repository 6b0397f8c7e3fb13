// SPDX-License-Identifier: Apache-2.0
#include "dist/tensor/tensor_parallel.h"

#include <unordered_set>

#include "core/autograd.h"
#include "core/ops/concat.h"
#include "core/ops/reduce.h"
#include "dist/ddp/agreement.h"
#include "dist/fsdp/fsdp_schedule.h"

namespace weft::dist {
namespace {

/// The names of a module's own parameters.
struct OwnParameters : nn::Visitor {
  std::vector<std::string> found;
  void parameter(const std::string& path, Tensor&, nn::Layout) override { found.push_back(path); }
};

}  // namespace

TensorParallel::TensorParallel(std::shared_ptr<nn::Module> model, Grid grid, DdpOptions options)
    : model_(std::move(model)), grid_(std::move(grid)) {
  find_partitions();
  auto ddp = std::make_unique<DDP>(model_, grid_.data(), options);
  ddp_ = ddp.get();
  divide(std::move(ddp));
}

TensorParallel::TensorParallel(std::shared_ptr<nn::Module> model, Grid grid, FsdpOptions options)
    : model_(std::move(model)), grid_(std::move(grid)) {
  find_partitions();
  auto fsdp = std::make_unique<FSDP>(model_, grid_.data(), std::move(options));
  fsdp_ = fsdp.get();
  divide(std::move(fsdp));
}

void TensorParallel::divide(std::unique_ptr<Strategy> data) {
  data_ = std::move(data);
  synchronise();
  std::unordered_set<const TensorImpl*> whole;
  for (const NamedTensor& parameter : parameters())
    if (partition(parameter.name).is_whole() || grid_.model()->size() == 1) whole.insert(parameter.tensor.impl());
  const auto flat = FlatParameters::of(trained());
  if (ddp_) flat->undivide();  // an optimizer may have kept them from an earlier TensorParallel of this model
  flat->divide(
      {.is_divided = [whole](const Tensor& parameter) { return !whole.contains(parameter.impl()); },
       .gather =
           [group = grid_.model(), device = model_->device()](const Tensor& own, const char* name) {
             if (group->size() == 1) return own.reshape({1, own.numel()});
             const Tensor all = Tensor::empty({group->size(), own.numel()}, own.dtype(), device);
             group->all_gather(all, own.to(device), {.name = name, .scale = {}, .at_once = true})->wait();
             return all.to(own.device());
           },
       .others = grid_.model()->others()});
}

void TensorParallel::find_partitions() {
  WEFT_CHECK(model_, "tensor_parallel: expected a model, got none");
  check_same_model(*grid_.model(), *model_, "tensor_parallel");
  for (const auto& [path, module] : model_->modules()) {
    const auto* const divided = dynamic_cast<const PartitionedModule*>(module);
    if (divided == nullptr) continue;
    const ProcessGroup &holders = divided->holders(), &model = *grid_.model();
    WEFT_CHECK(holders.rank() == model.rank() && holders.others() == model.others(), "tensor_parallel: '", path,
               "' is divided among another group's ", holders.size(), " ranks than those of grid.model(), ",
               model.size(), ". Build it over grid.model()");
    OwnParameters own;
    module->fields(own);
    for (const std::string& name : own.found)
      if (const Partition partition = divided->partition(name); !partition.is_whole())
        partitions_[path.empty() ? name : path + '.' + name] = partition;
  }
}

Partition TensorParallel::partition(const std::string& name) const {
  const auto found = partitions_.find(name);
  return found == partitions_.end() ? Partition{} : found->second;
}

void TensorParallel::synchronise() {
  if (grid_.model()->size() == 1) return;
  const NoGrad no_grad;
  std::vector<NamedTensor> whole = model_->buffers();
  if (fsdp_ == nullptr) {
    for (const NamedTensor& parameter : model_->parameters())
      if (partition(parameter.name).is_whole()) whole.push_back(parameter);
  } else {  // the parts of all model ranks have the same sizes, so that shards of whole parameters do too
    for (const auto& unit : fsdp_->units())
      for (const auto& shard : unit->shards())
        for (const ShardedParameter& p : shard->parameters())
          if (partition(p.name).is_whole() && p.length > 0) whole.push_back({p.name, shard->part(shard->master(), p)});
  }
  const Device device = model_->device();
  for (const auto& [name, tensor] : whole) {
    const Tensor dense = tensor.detach().contiguous().to(device);
    grid_.model()->broadcast(dense, 0, {.name = "whole " + name, .scale = {}, .at_once = true})->wait();
    if (dense.raw_data() != tensor.raw_data())
      tensor.detach().copy_(dense);
    else
      tensor.storage()->bump_version();
  }
}

std::vector<NamedTensor> TensorParallel::trained() const {
  std::vector<NamedTensor> trained;
  for (const NamedTensor& parameter : parameters())
    if (parameter.tensor.requires_grad()) trained.push_back(parameter);
  return trained;
}

Tensor TensorParallel::grad_norm() const {
  const NoGrad no_grad;
  return FlatParameters::of(trained())->whole_norm(trained()).reshape({});
}

Tensor TensorParallel::clip_grad_norm(double max_norm) {
  WEFT_CHECK(max_norm > 0, "tensor_parallel: clip_grad_norm: expected a positive norm, got ", max_norm);
  return weft::clip_grad_norm(trained(), max_norm);
}

}  // namespace weft::dist
