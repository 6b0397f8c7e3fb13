// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

#include "apps/support/accelerate.h"
#include "train/averages.h"

namespace weft::finetune {

/// The flags of finetune, one field each; see options.cpp for what `--help` says about them.
struct Options {
  std::string data = "mrpc";
  std::string train_file, validation_file;  ///< in the folder, or anywhere; "": as found there
  std::string text_columns, label_column;   ///< names between commas; "": those that are known
  std::string problem = "auto";
  std::string model = "bert_base";
  std::string weights = "auto", weights_key;
  std::string vocab;
  int64_t vocab_size = 8000;
  int64_t max_length = 128;
  int64_t epochs = 3;
  int64_t batch_size = 8;
  int64_t accumulate = 1;
  double lr = 5e-5;
  double weight_decay = 0;
  double layer_decay = 1;
  train::AverageOptions averages;
  double warmup_ratio = 0;
  double max_grad_norm = 1;
  double dropout = -1;  ///< below 0: as the configuration beside the weights says, else 0.1
  int64_t logging_steps = 500;
  int64_t save_steps = 500;
  std::string precision = "f32";
  std::string parallel = "auto";
  std::string backend = "auto";
  int64_t min_num_params = 1'000'000;
  std::string device = "auto";
  int64_t seed = 42;
  std::string resume;
  bool may_resume = false;  ///< it was given, whether there is a checkpoint or not
  bool overwrite = false;
  int64_t max_steps = 0;
  std::string out = "test-trainer";
  bool dry_run = false;
  support::AccelerateConfig accelerate;  ///< where this process is the only one of its machine

  std::string toml;  ///< the values in effect, as written to config.toml
};

/// Reads the command line and --config. False: --help was printed. Errors: UsageError, see support::Flags.
bool parse_options(int argc, char** argv, Options& options);

}  // namespace weft::finetune
