// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>

#include "apps/nersc/options.h"
#include "io/torch/torch_object.h"
#include "optim/optimizer.h"
#include "optim/reduce_on_plateau.h"

namespace weft::nersc {

/// How the learning rate goes on from epoch to epoch: `none`, `cosine` (PyTorch's CosineAnnealingLR to 0) or `reducelr`
/// (its ReduceLROnPlateau); its state is what these classes' state_dict() gives.
class LearningRate {
 public:
  LearningRate(const Config& config, optim::Optimizer& optimizer);

  /// Once per epoch, after the validation.
  void step(double val_loss);

  TorchObject state() const;
  /// Errors: it is of another schedule; `what` begins the text.
  void load(const TorchObject& state, const std::string& what);

 private:
  TorchObject cosine_state() const;
  TorchObject plateau_state() const;

  const Config& config_;
  optim::Optimizer& optimizer_;
  int64_t epochs_ = 0;
  double base_lr_;
  std::unique_ptr<optim::ReduceOnPlateau> plateau_;
};

}  // namespace weft::nersc
