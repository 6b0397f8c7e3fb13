// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "train/record/canvas.h"
#include "train/record/json_lines.h"
#include "train/record/run_folder.h"
#include "train/record/tensorboard.h"

namespace weft::train {

using NamedNumbers = std::vector<std::pair<std::string, double>>;

/// A value as YAML, see yaml_text.h.
std::string yaml_value(const HyperParameter& value);

/// One entry `key: {value: …}` in two lines, as wandb writes its own config.yaml (wandb 0.28, sdk/lib/config_util.py:
/// `wandb.init(config="FOLDER/config.yaml")` reads it).
std::string wandb_config(const HyperParameters& values);

/// A run's log under names of its own, in place of a tracking service: `FOLDER/metrics.jsonl` (one object a
/// line: `{"step": 3, "time": …, "train_loss": 0.1}`), a TensorBoard event file with the same names, and
/// `FOLDER/config.yaml` with the run's settings. weft-watch reads all such folders. The first rank alone
/// makes one.
class ScalarLog {
 public:
  /// Creates the folder. `resumed_step` (-1: a new run, which appends to what is there): later lines of an earlier run
  /// of this folder go. Errors: those of RunFolder.
  explicit ScalarLog(std::filesystem::path folder, int64_t resumed_step = -1);

  /// Writes config.yaml and the HPARAMS page. Call it once.
  void config(const HyperParameters& values);
  /// Numbers that are not finite become null in metrics.jsonl. Errors: the disk is full.
  void log(int64_t step, const NamedNumbers& values);
  /// TensorBoard only.
  void image(std::string_view tag, const Canvas& canvas, int64_t step);
  /// How the run ended.
  void end(bool success);

 private:
  RunFolder folder_;
  JsonLines lines_;
  TensorBoard board_;
};

}  // namespace weft::train
