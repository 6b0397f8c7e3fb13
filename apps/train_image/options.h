// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "train/run_options.h"

namespace weft::train_image {

/// The flags of train_image, one field each; see options.cpp for what `--help` says about them.
struct Options : train::RunOptions {
  Options() {
    data = "shapes", model = "auto";
    epochs = 10, batch_size = 128, lr = 0.1, weight_decay = 5e-4;
    program = "train_image", graph = "auto", out = "runs/train_image";
  }
  std::string stem = "auto";
  int64_t image_size = 0;
  std::string optimizer = "sgd";
  double momentum = 0.9;
  std::string schedule = "cosine";
  std::vector<double> milestones{0.5, 0.75};
  double power = 2;
  double warmup = 0;
  double label_smoothing = 0;
  std::string augment = "auto";
  std::vector<double> crop_scale, crop_ratio;
  std::string interpolation = "bilinear";
  std::vector<double> color_jitter;
  double random_erasing = 0;
  double mixup = 0;
  double cutmix = 0;
  std::string transform_on = "auto", decode_on = "cpu";
  std::vector<double> mean, std;
  std::string weights_strict = "yes", weights_prefix;
  std::string export_file;
  bool eval_only = false;
  bool summary = false;
};

/// Reads the command line and --config. False: --help was printed. Errors: UsageError, see support::Flags.
bool parse_options(int argc, char** argv, Options& options);

}  // namespace weft::train_image
