// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/support/json_lines.h"
#include "apps/support/picture.h"
#include "apps/support/run_folder.h"
#include "apps/support/tensorboard.h"

namespace weft::support {

using NamedNumbers = std::vector<std::pair<std::string, double>>;

/// One entry `key: {value: …}` in two lines, as wandb writes its own config.yaml (wandb 0.28, sdk/lib/config_util.py:
/// `wandb.init(config="FOLDER/config.yaml")` reads it).
std::string wandb_config(const HyperParameters& values);

/// What a run logs under names of its own, where others call a tracking service: `FOLDER/metrics.jsonl` (one object a
/// line: `{"step": 3, "time": …, "train_loss": 0.1}`), a TensorBoard event file with the same names, and
/// `FOLDER/config.yaml` with what the run was started with. weft-watch reads all such folders. The first rank alone
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
  void picture(std::string_view tag, const Picture& picture, int64_t step);
  /// How the run ended.
  void end(bool success);

 private:
  RunFolder folder_;
  JsonLines lines_;
  TensorBoard board_;
};

}  // namespace weft::support
