// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>

#include "io/torch/torch_object.h"
#include "train/tensorboard.h"

namespace weft::jsc {

/// What a checkpoint of Lightning holds of a run.
struct LightningCheckpoint {
  int64_t epoch = 0;        ///< finished epochs
  int64_t global_step = 0;  ///< optimizer steps
  StateDict model;          ///< under torchvision's names
  TorchObject optimizer;    ///< train::TorchOptimizer::state()
  train::HyperParameters hyper_parameters;
};

/// Writes it with PyTorch's format and Lightning's keys: epoch, global_step, pytorch-lightning_version, state_dict,
/// loops, callbacks, optimizer_states, lr_schedulers, hyper_parameters. Replaces
/// an old file in one go. Errors: see write_torch.
void write_lightning_checkpoint(const std::filesystem::path& path, const LightningCheckpoint& checkpoint);

}  // namespace weft::jsc
