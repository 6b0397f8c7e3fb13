// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "train/run_options.h"

namespace weft::linear_probe {

/// The flags of linear_probe, one field each; see options.cpp for what `--help` says about them.
struct Options : train::RunOptions {
  Options() {
    program = "linear_probe", data = "cifar100:./cifar100", model = "dinov2_vitl14_reg", weights = "random";
    epochs = 5, batch_size = 256, lr = 1e-3, precision = "bf16", graph = "auto", out = "runs/linear_probe";
    auto_shards = true;
  }
  std::string phases = "probe,finetune";
  double layer_decay = 1;
  int64_t image_size = 0;
  int64_t resize = 0;
  std::string interpolation = "bilinear";
  std::string checkpointing = "none";
  std::string cache_features = "auto";
  std::string eval = "none";
  int64_t logreg_values = 45;
  int64_t logreg_iterations = 1000;
  std::string logreg_precision = "f64";
  bool explain_sharding = false;
  bool explain_memory = false;

  /// Features are kept in a file of this name, not in memory alone.
  bool has_feature_file() const { return cache_features.ends_with(".safetensors"); }
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
