// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "train/averages.h"

namespace weft::train_image {

/// The flags of train_image, one field each; see options.cpp for what `--help` says about them.
struct Options {
  std::string data = "shapes";
  std::string model = "auto";
  std::string stem = "auto";
  int64_t image_size = 0;
  int64_t epochs = 10;
  int64_t batch_size = 128;
  double lr = 0.1;
  std::string optimizer = "sgd";
  double momentum = 0.9;
  std::string schedule = "cosine";
  std::vector<double> milestones{0.5, 0.75};
  double power = 2;
  double warmup = 0;
  double weight_decay = 5e-4;
  double label_smoothing = 0;
  double clip_norm = 0;
  train::AverageOptions averages;
  std::string augment = "auto";
  std::vector<double> crop_scale, crop_ratio;
  std::string interpolation = "bilinear";
  std::vector<double> color_jitter;
  double random_erasing = 0;
  double mixup = 0;
  double cutmix = 0;
  std::string transform_on = "auto", decode_on = "cpu";
  std::string precision = "f32";
  std::string device = "auto";
  int64_t workers = 2;
  int64_t seed = 1;
  std::string out = "runs/train_image";
  std::vector<double> mean, std;
  std::string resume;
  int64_t keep = 2;
  bool overwrite = false;
  std::string weights, weights_strict = "yes", weights_prefix, weights_key;
  std::string export_file;
  bool eval_only = false;
  int64_t max_steps = 0;
  int64_t log_interval = 0, save_interval = 0;
  std::string graph = "auto";
  std::string parallel = "auto";
  std::string backend = "auto";
  double bucket_mb = 25;
  std::string grad_compression = "none";
  bool sync_batch_norm = false;
  std::string fsdp_strategy = "full_shard";
  int64_t fsdp_min_params = 1'000'000;
  int64_t fsdp_shard_size = 0;
  std::string usr1 = "save";
  bool summary = false;
  std::string profile;
  std::string profile_steps = "5:8";
  bool dry_run = false;

  std::string toml;  ///< the values in effect, as written to config.toml
};

/// Reads the command line and --config. False: --help was printed. Errors: UsageError, see support::Flags.
bool parse_options(int argc, char** argv, Options& options);

}  // namespace weft::train_image
