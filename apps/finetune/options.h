// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "apps/support/accelerate.h"
#include "train/run_options.h"

namespace weft::finetune {

/// The flags of finetune, one field each; see options.cpp for what `--help` says about them.
struct Options : train::RunOptions {
  Options() {
    data = "mrpc", model = "bert_base", weights = "auto";
    epochs = 3, batch_size = 8, lr = 5e-5, clip_norm = 1;
    log_interval = save_interval = 500;
    seed = 42, out = "test-trainer", unit = "texts", graph = "auto";
  }
  bool has_model = false;                   ///< --model was given
  std::string train_file, validation_file;  ///< in the folder, or anywhere; "": as found there
  std::string text_columns, label_column;   ///< names between commas; "": those that are known
  std::string problem = "auto";
  std::string vocab;
  int64_t vocab_size = 8000;
  int64_t max_length = 128;
  int64_t pad_to_multiple_of = 0;  ///< tokens; 0: on a GPU padding_step(), else 1
  double layer_decay = 1;
  double warmup_ratio = 0;
  double dropout = -1;                   ///< below 0: as the configuration beside the weights says, else 0.1
  bool may_resume = false;               ///< it was given, whether there is a checkpoint or not
  support::AccelerateConfig accelerate;  ///< where this process is the only one of its machine
};

/// Reads the command line and --config. False: --help was printed. Errors: UsageError, see support::Flags.
bool parse_options(int argc, char** argv, Options& options);

}  // namespace weft::finetune
