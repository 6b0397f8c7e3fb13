// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

namespace weft::gpt {

/// The flags of train_gpt, one field each; see options.cpp for what `--help` says about them.
struct Options {
  std::string data = "tinyshakespeare/input.txt";
  double val_share = 0.1;
  std::string tokenizer = "auto";
  std::string model = "gpt_mini";
  std::string weights = "random";
  std::string weights_key;
  int64_t context = 0;
  int64_t epochs = 10;
  int64_t batch_size = 12;
  int64_t accumulate = 1;
  double lr = 1e-3;
  int64_t warmup_steps = 100;
  double weight_decay = 0.1;
  double beta2 = 0.99;
  double clip_norm = 1;
  double dropout = 0;
  int64_t log_interval = 10;
  int64_t save_interval = 0;
  std::string precision = "f32";
  std::string parallel = "auto";
  int64_t tensor = 1, pipeline = 1, chunks = 1, micro_batches = 0;
  std::string backend = "auto";
  int64_t min_num_params = 1'000'000;
  std::string device = "auto";
  int64_t seed = 1337;
  std::string resume;
  int64_t max_steps = 0;
  std::string out = "gpt-run";
  bool overwrite = false;
  bool dry_run = false;

  std::string toml;  ///< the values in effect, as written to config.toml
};

/// Reads the command line and --config. False: --help was printed. Errors: UsageError, see support::Flags.
bool parse_options(int argc, char** argv, Options& options);

}  // namespace weft::gpt
