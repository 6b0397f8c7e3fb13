// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <iostream>
#include <string>
#include <vector>

#include "data/image_loader.h"
#include "train/engine.h"
#include "train/record/averages.h"
#include "train/resume.h"

namespace weft::train {

/// The options that programs share, one field a flag: support::add_run_flags() has their names and texts. A program's
/// own options derive from them, and set other defaults.
struct RunOptions {
  std::string program;          ///< the name in the line of a stopped run; "": the program prints that line itself
  std::string unit = "images";  ///< samples of a batch, in texts
  int64_t epochs = 1, batch_size = 1, accumulate = 1;
  std::string data, model, weights, weights_key;
  double lr = 1e-3, weight_decay = 0, clip_norm = 0;
  AverageOptions averages;
  bool recompute = false;

  std::string precision = "f32", graph = "off";

  std::string device = "auto", backend = "auto", parallel = "auto";
  double bucket_mb = 25;
  std::string grad_compression = "none";
  bool sync_batch_norm = false;
  std::string fsdp_strategy = "full_shard";
  std::string fsdp_offload = "none", fsdp_checkpoints = "whole", fsdp_accumulate = "whole";
  int64_t min_num_params = 0, fsdp_shard_size = 0;
  bool auto_shards = false;  ///< `--parallel auto` is fsdp on several ranks, not ddp

  std::string out, resume;
  bool overwrite = false, dry_run = false;
  int64_t workers = 2, seed = 1, keep = 2, max_steps = 0;
  int64_t log_interval = 0, save_interval = 0;
  std::string usr1 = "save";
  std::string profile, profile_steps = "5:8";

  /// Set by defer_weights(), for the scope in which a program makes its model; null: the weights are written at once.
  std::shared_ptr<nn::DeferredInit> deferred = {};
  std::string toml = {};  ///< Flags::toml(): the values in effect, as written to config.toml

  /// The products have it; sharded weights are gathered in it, and an engine keeps a copy of the others.
  DType dtype() const { return precision_named(precision); }
};

/// Errors: flags of fsdp without `--parallel fsdp`.
void check_sharding(const RunOptions& options);

/// The ranks of the run. Errors: those of check_sharding(); ranks were not all started with the same flags, but for
/// places of files.
dist::World join_ranks(const RunOptions& options);

/// Trains, or with --dry-run says what T::plan() does. Returns the exit code.
template <class T>
int run_or_plan(const RunOptions& options, const dist::World& ranks, T&& trainer) {
  if (!options.dry_run) return exit_code(trainer.run());
  if (ranks.is_first()) std::cout << "dry run: would train " << trainer.plan() << std::endl;
  return 0;
}

/// The order of training data, another in each epoch; no two ranks differ by more than a sample.
data::SamplerOptions training_order(const RunOptions& options, const dist::World& ranks);
/// Each sample once.
data::SamplerOptions validation_order(const dist::World& ranks);
data::ImageLoaderOptions image_loading(const RunOptions& options, Device device);

/// Under fsdp weights are made, and read, unit by unit on rank 0, from which each rank gets its shard.
void defer_weights(RunOptions& options);
StrategyOptions strategy_options(const RunOptions& options, std::optional<Device> device = {});
EngineOptions engine_options(const RunOptions& options);
StopOptions stop_options(const RunOptions& options);

/// The model goes to the device, but for fsdp, which takes it there unit by unit. `--precision fp8`: the linear layers
/// of its transformer blocks multiply in 8 bits. Errors: it has none.
void place(const RunOptions& options, nn::Module& model, Device device);

/// For open_run_folder(): nothing where --resume goes on in --out. `own_names`: see NewRun.
std::optional<NewRun> new_run(const RunOptions& options, const std::vector<std::string>& own_names = {});

/// changed_settings() since the run that wrote the checkpoint; `ignored` beside the shared flags that change no result.
ChangedSettings changed_settings(const Checkpoint& saved, const RunOptions& options, const std::string& ignored);
ChangedSettings changed_settings(const std::string& saved, const RunOptions& options, const std::string& ignored);

}  // namespace weft::train
