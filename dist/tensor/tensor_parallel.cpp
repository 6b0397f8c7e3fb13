// SPDX-License-Identifier: Apache-2.0
#include "dist/tensor/tensor_parallel.h"

#include <unordered_set>

#include "core/autograd.h"
#include "core/ops/concat.h"
#include "core/ops/reduce.h"
#include "dist/ddp/agreement.h"

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
  WEFT_CHECK(model_, "tensor_parallel: expected a model, got none");
  find_partitions();
  check_same_model(*grid_.model(), *model_, "tensor_parallel");
  synchronise();
  ddp_ = std::make_unique<DDP>(model_, grid_.data(), options);
  std::unordered_set<const TensorImpl*> whole;
  for (const NamedTensor& parameter : trained())
    if (partition(parameter.name).is_whole()) whole.insert(parameter.tensor.impl());
  FlatParameters::of(trained())->set_division(
      {.is_divided = [whole](const Tensor& parameter) { return !whole.contains(parameter.impl()); },
       .gather =
           [group = grid_.model()](const Tensor& own, const char* name) {
             const Tensor all = Tensor::empty({group->size(), own.numel()}, own.dtype(), own.device());
             if (group->size() == 1) return own.reshape(all.sizes());
             group->all_gather(all, own, {.name = name, .scale = {}, .at_once = true})->wait();
             return all;
           }});
}

void TensorParallel::find_partitions() {
  for (const auto& [path, module] : model_->modules()) {
    const auto* const divided = dynamic_cast<const PartitionedModule*>(module);
    if (divided == nullptr) continue;
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
  for (const NamedTensor& parameter : model_->parameters())
    if (partition(parameter.name).is_whole()) whole.push_back(parameter);
  for (const auto& [name, tensor] : whole) {
    const Tensor dense = tensor.detach().contiguous();
    grid_.model()->broadcast(dense, 0, {.name = "whole " + name, .scale = {}, .at_once = true})->wait();
    if (dense.raw_data() != tensor.raw_data())
      tensor.detach().copy_(dense);
    else
      tensor.storage()->bump_version();
  }
}

std::vector<NamedTensor> TensorParallel::trained() const {
  std::vector<NamedTensor> trained;
  for (const NamedTensor& parameter : ddp_->parameters())
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
