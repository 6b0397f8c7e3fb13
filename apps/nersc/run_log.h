// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <string>

#include "apps/nersc/options.h"
#include "apps/nersc/random_fields.h"
#include "train/scalar_log.h"

namespace weft::nersc {

/// What a tracked run (`log_to_wandb`, --sweep_id) leaves beside its checkpoints: `hyperparams.yaml`, and under
/// `wandb/` the numbers of each epoch as metrics.jsonl, TensorBoard file and config.yaml. Of the first rank.
class RunLog {
 public:
  /// `done`: epochs that an earlier run of this folder has made; what is logged of later ones goes.
  RunLog(const std::filesystem::path& folder, const Config& config, int64_t done);

  /// `epoch`: from 1.
  void log(int64_t epoch, const train::NamedNumbers& numbers) { log_.log(epoch, numbers); }
  /// The first target of the batch and what the model made of it, side by side.
  void fields(int64_t epoch, const Tensor& target, const Tensor& prediction);
  void end(bool finished) { log_.end(finished); }

 private:
  train::ScalarLog log_;
};

}  // namespace weft::nersc
