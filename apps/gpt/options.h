// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "train/run_options.h"

namespace weft::gpt {

/// The flags of train_gpt, one field each; see options.cpp for what `--help` says about them.
struct Options : train::RunOptions {
  Options() {
    data = "tinyshakespeare/input.txt", model = "gpt_mini", weights = "random";
    epochs = 10, batch_size = 12, lr = 1e-3, weight_decay = 0.1, clip_norm = 1;
    program = "train_gpt", graph = "auto", log_interval = 10, seed = 1337, out = "gpt-run", unit = "sequences";
  }
  double val_share = 0.1;
  std::string tokenizer = "auto";
  std::string rows = "auto", loss_on = "answers";
  int64_t context = 0;
  int64_t warmup_steps = 100;
  double beta2 = 0.99;
  double dropout = 0;
  int64_t lora = 0;
  double lora_alpha = 0;
  bool sequence = false;
  int64_t tensor = 1, pipeline = 1, chunks = 1, micro_batches = 0;
};

/// Reads the command line and --config. False: --help was printed. Errors: UsageError, see support::Flags.
bool parse_options(int argc, char** argv, Options& options);

}  // namespace weft::gpt
