// SPDX-License-Identifier: Apache-2.0
#include "tests/dist/parallel_tower.h"

#include <cmath>
#include <mutex>

#include "core/autograd.h"
#include "core/random.h"

namespace weft::dist::testing {
namespace {

/// The initial values of the whole parameter of this name.
Tensor whole_values(const std::string& name, const Shape& sizes) {
  std::vector<double> values;
  for (int64_t i = 0; i < sizes.numel(); ++i)
    values.push_back(std::sin(static_cast<double>(name.size() * 37 + name.front() + i)) * 0.3 +
                     (name.find("norm") != std::string::npos && name.ends_with("weight") ? 1 : 0));
  return Tensor::from(values, sizes);
}

}  // namespace

std::shared_ptr<BlockTower> tower(int blocks, const ProcessGroupPtr& group, DType dtype, Device device, Tokens tokens) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  manual_seed(31);
  const auto model = std::make_shared<BlockTower>(blocks, group, tokens);
  const NoGrad no_grad;
  const int n = group ? group->size() : 1, rank = group ? group->rank() : 0;
  for (const NamedTensor& parameter : model->parameters()) {
    if (parameter.tensor.dim() != 1) continue;  // weights are drawn from the seed.
    // Biases whose layer is divided by its outputs: qkv's in three stretches.
    const bool qkv = parameter.name.ends_with("qkv.bias"), fc1 = parameter.name.ends_with("fc1.bias");
    const Partition partition = qkv ? Partition{0, 3} : fc1 ? Partition{0, 1} : Partition{};
    const Tensor whole = whole_values(parameter.name, Shape{parameter.tensor.size(0) * (qkv || fc1 ? n : 1)});
    parameter.tensor.detach().copy_(partition.part(whole, rank, n));
  }
  model->to(dtype);
  model->to(device);
  return model;
}

}  // namespace weft::dist::testing
