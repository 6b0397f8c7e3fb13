// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>

#include "io/torch/torch_object.h"
#include "train/record/tensorboard.h"

namespace weft::jsc {

/// Makes `ROOT/version_N` with the lowest N above those that are there, as Lightning numbers its runs. Two runs that
/// start at once get two folders. Errors: it cannot be made.
std::filesystem::path make_version_folder(const std::filesystem::path& root);

/// `hparams.yaml`, a line for each value.
void write_hparams(const std::filesystem::path& folder, const train::HyperParameters& values);

/// A run's state in a checkpoint of Lightning.
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
