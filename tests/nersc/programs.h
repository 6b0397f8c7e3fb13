// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gmock/gmock.h>

#include <regex>
#include <sstream>
#include <vector>

#include "tests/support/shell.h"
#include "tests/support/temporary_folder.h"

namespace weft::tests {

/// A folder with `small.yaml`, whose sections train in a moment: `default` for three epochs of 8 samples of 12 x 12.
struct NerscFolder : TemporaryFolder {
  NerscFolder() {
    write("small.yaml", R"(default: &DEFAULT
  num_data_workers: 1
  num_samples: 8
  img_size: 12
  in_chan: 1
  out_chan: 1
  depth: 3
  lr: 1E-3
  max_epochs: 3
  max_cosine_lr_epochs: 3
  batch_size: 4
  valid_batch_size: 4
  log_to_screen: !!bool True
  save_checkpoint: !!bool True
  train_path: ''
  val_path: ''
longer:
  <<: *DEFAULT
  max_epochs: 5
  max_cosine_lr_epochs: 5
)");
  }
  void write(const std::string& name, const std::string& text) const { std::ofstream(*this / name) << text; }
};

/// Runs train_single_gpu in the folder.
inline Outcome train_single(const NerscFolder& folder, const std::string& arguments) {
  return shell("cd " + (folder / "") + " && " TRAIN_SINGLE_GPU " --device cpu --yaml_config=small.yaml " + arguments);
}

/// Runs train_multi_gpu in the folder, as ranks of weft-run.
inline Outcome train_on(int ranks, const NerscFolder& folder, const std::string& arguments) {
  return shell("cd " + (folder / "") + " && OMP_NUM_THREADS=1 " WEFT_RUN " --nproc_per_node " + std::to_string(ranks) +
               " " TRAIN_MULTI_GPU " --device cpu --yaml_config=small.yaml " + arguments);
}
inline Outcome train_on_two(const NerscFolder& folder, const std::string& arguments) {
  return train_on(2, folder, arguments);
}

inline const std::string kNumber = R"([0-9.]+(?:e-?[0-9]+)?)";
inline const std::string kTimeLine =
    "Time taken for epoch [0-9]+ is " + kNumber + " sec; with " + kNumber + "/" + kNumber + " in tr/val";
inline const std::string kLossLine = "Loss = " + kNumber + ", Val loss = " + kNumber;

/// `Loss = X, Val loss = Y` of each epoch.
inline std::vector<std::string> losses(const std::string& output) { return lines(output, kLossLine); }

/// X and Y of such a line.
inline std::pair<double, double> values(const std::string& line) {
  double loss = 0, val_loss = 0;
  std::sscanf(line.c_str(), "Loss = %lf, Val loss = %lf", &loss, &val_loss);
  return {loss, val_loss};
}

}  // namespace weft::tests
