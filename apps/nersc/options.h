// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

#include "train/record/tensorboard.h"
#include "train/run_options.h"

namespace weft::nersc {

/// The command line.
struct Options : train::RunOptions {
  Options() { lr = 0, batch_size = 0; }  // above 0: in place of the file's, for sweeps
  std::string yaml_config = "./configs/default.yaml", config = "default";
  std::string root_dir = "./outputs", run_num = "0";
  std::string sweep_id;  ///< empty: no sweep
};

/// The section of the YAML file; the values here are its defaults.
struct Config {
  int64_t num_data_workers = 1;
  int64_t num_samples = 128, img_size = 128;
  int64_t in_chan = 1, out_chan = 1, depth = 5;
  double lr = 1e-3, momentum = 0.9;
  int64_t max_epochs = 25, max_cosine_lr_epochs = 25, patience = 10;
  int64_t batch_size = 32, valid_batch_size = 32;  ///< samples on all ranks together
  bool log_to_screen = true, save_checkpoint = true;
  std::string model = "cnn", loss_func = "mse", optimizer = "adam", scheduler = "cosine";
  int64_t seed = 0;
  bool track = false;  ///< log_to_wandb
  std::string entity, project;
};

/// Reads the flags; false when --help was asked for. `several`: of train_multi_gpu.
bool parse_options(int argc, char** argv, bool several, Options& options);

/// Reads the section. Errors: those of YamlSection; a word that is no model, optimizer, ….
Config read_config(const Options& options);

/// The folder of the run: `ROOT/CONFIG/RUN`, of a run that is tracked `ROOT/expts/CONFIG/RUN`, of a sweep
/// `ROOT/sweeps/ID/RUN`.
std::filesystem::path experiment_folder(const Options& options, const Config& config);

/// All values of the configuration as a YAML file: hyperparams.yaml.
std::string yaml(const Config& config);
train::HyperParameters hyper_parameters(const Config& config);

}  // namespace weft::nersc
