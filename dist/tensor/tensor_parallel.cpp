// SPDX-License-Identifier: Apache-2.0
#include "dist/tensor/tensor_parallel.h"

#include "core/autograd.h"
#include "core/ops/concat.h"
#include "core/ops/norm.h"
#include "dist/ddp/agreement.h"
#include "kernels/optimizer.h"

namespace weft::dist {
namespace {

/// The names of a module's own parameters.
struct OwnParameters : nn::Visitor {
  std::vector<std::string> found;
  void parameter(const std::string& path, Tensor&, nn::Layout) override { found.push_back(path); }
};

/// The norm of some ranges of the flat gradient; [1].
Tensor norm_of(const Tensor& gradient, const std::vector<FlatRange>& ranges) {
  if (ranges.empty()) return Tensor::zeros({1}, gradient.dtype(), gradient.device());
  std::vector<Tensor> norms;
  for (const FlatRange& range : ranges)
    norms.push_back(norm(gradient.slice(0, range.offset, range.numel)).reshape({1}));
  return norm(concat(norms, 0)).reshape({1});
}

}  // namespace

TensorParallel::TensorParallel(std::shared_ptr<nn::Module> model, Grid grid, DdpOptions options)
    : model_(std::move(model)), grid_(std::move(grid)) {
  WEFT_CHECK(model_, "tensor_parallel: expected a model, got none");
  find_partitions();
  check_same_model(*grid_.model(), *model_, "tensor_parallel");
  synchronise();
  ddp_ = std::make_unique<DDP>(model_, grid_.data(), options);
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
  std::vector<NamedTensor> divided, whole;
  for (const NamedTensor& parameter : trained())
    (partition(parameter.name).is_whole() ? whole : divided).push_back(parameter);
  const std::shared_ptr<FlatParameters> flat = FlatParameters::of(trained());
  const Tensor& gradient = flat->gradient();
  const Tensor of_whole = norm_of(gradient, flat->ranges(whole));
  Tensor of_divided = norm_of(gradient, flat->ranges(divided));
  if (const int n = grid_.model()->size(); n > 1) {
    const Tensor all = Tensor::empty({n}, of_divided.dtype(), of_divided.device());
    grid_.model()->all_gather(all, of_divided, {.name = "gradient norm", .scale = {}, .at_once = true})->wait();
    of_divided = all;
  }
  return norm(concat({of_whole, of_divided}, 0));
}

Tensor TensorParallel::clip_grad_norm(double max_norm) {
  WEFT_CHECK(max_norm > 0, "tensor_parallel: clip_grad_norm: expected a positive norm, got ", max_norm);
  const NoGrad no_grad;
  const Tensor total = grad_norm();
  const Tensor& gradient = FlatParameters::of(trained())->gradient();
  kernels::clip_gradient(gradient.queue(), gradient, total, max_norm);
  gradient.storage()->bump_version();
  return total;
}

}  // namespace weft::dist
