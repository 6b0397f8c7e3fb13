// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "io/torch/torch_object.h"
#include "nn/module.h"
#include "optim/optimizers.h"

namespace weft::train {

/// The entries of a parameter group of torch.optim that say its rule: `betas`, `eps`, … for Adam and AdamW, `momentum`,
/// `nesterov`, … for SGD.
TorchObject::Dict torch_options(const optim::AdamOptions& options);
TorchObject::Dict torch_options(const optim::SgdOptions& options);

/// An optimizer of a model, made of these groups, all of which has moments for each trained parameter.
struct TorchOptimizer {
  nn::Module& model;
  optim::Optimizer& optimizer;
  std::vector<optim::ParameterGroup> groups;  ///< as the optimizer was given them
  TorchObject::Dict options = {};             ///< torch_options()

  /// The state_dict() of torch.optim: `{"state": {0: {"step": …, "exp_avg": …}, …}, "param_groups": [{"lr": …, …,
  /// "params": [0, …]}]}`, parameters numbered group by group, convolution weights as PyTorch has them (OIHW).
  TorchObject state() const;
  /// Takes such a state; parameters without an entry begin with a new state. `steps`: how many were made, where the
  /// rule keeps no count (SGD). Errors: another number of parameters or groups, wrong shapes; `what` begins the text.
  void load(const TorchObject& state, int64_t steps, const std::string& what) const;
};

}  // namespace weft::train
