// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

#include "train/averages.h"

namespace weft::linear_probe {

/// The flags of linear_probe, one field each; see options.cpp for what `--help` says about them.
struct Options {
  std::string data = "cifar100:./cifar100";
  std::string model = "dinov2_vitl14_reg";
  std::string weights = "random";
  std::string phases = "probe,finetune";
  int64_t epochs = 5;
  int64_t batch_size = 256;
  int64_t accumulate = 1;
  double lr = 1e-3;
  double weight_decay = 0;
  double layer_decay = 1;
  train::AverageOptions averages;
  int64_t image_size = 0;
  int64_t resize = 0;
  std::string interpolation = "bilinear";
  std::string precision = "bf16";
  std::string checkpointing = "none";
  std::string cache_features = "auto";
  std::string eval = "none";
  int64_t logreg_values = 45;
  int64_t logreg_iterations = 1000;
  std::string logreg_precision = "f64";
  std::string parallel = "auto";
  std::string backend = "auto";
  std::string fsdp_strategy = "full_shard";
  int64_t min_num_params = 1'000'000;
  bool explain_sharding = false;
  bool explain_memory = false;
  std::string device = "auto";
  std::string weights_key;
  int64_t workers = 2;
  int64_t seed = 1;
  std::string resume;
  int64_t keep = 2;
  bool overwrite = false;
  int64_t max_steps = 0;
  std::string usr1 = "save";
  std::string out = "runs/linear_probe";

  bool dry_run = false;

  std::string program = "linear_probe";  ///< the name it was started under
  std::string toml;                      ///< the values in effect, as written to config.toml

  /// Features are kept in a file of this name, not in memory alone. Earlier versions wrote `.h5`.
  bool has_feature_file() const { return cache_features.ends_with(".safetensors") || cache_features.ends_with(".h5"); }
  bool probes() const { return phases != "finetune"; }
  bool finetunes() const { return phases != "probe"; }
};

/// Started as `ouai_demo` the program is the OSCER workflow's: its defaults where they differ, its help, and a log with
/// the names that it gives its tracking service (docs/workflows/oscer.md).
inline constexpr const char* kOuaiDemo = "ouai_demo";

/// Reads the command line and --config; `-e`, `-b`, `-lr` are epochs, batch size and learning rate. False: --help was
/// printed. Errors: UsageError, see support::Flags.
bool parse_options(int argc, char** argv, Options& options);

}  // namespace weft::linear_probe
