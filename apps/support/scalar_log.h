// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/support/picture.h"
#include "apps/support/tensorboard.h"

namespace weft::support {

using NamedNumbers = std::vector<std::pair<std::string, double>>;

/// What a run logs under names of its own, where others call a tracking service: `FOLDER/metrics.jsonl` (one object a
/// line: `{"step": 3, "time": …, "train_loss": 0.1}`), a TensorBoard event file with the same names, and
/// `FOLDER/config.yaml` with what the run was started with (the form that `wandb sync` reads). weft-watch reads all
/// such folders. The first rank alone makes one.
class ScalarLog {
 public:
  /// Creates the folder. `resumed_step` (-1: a new run): later lines of an earlier run of this folder go.
  explicit ScalarLog(std::filesystem::path folder, int64_t resumed_step = -1);
  ~ScalarLog();

  void config(const HyperParameters& values);
  /// Numbers that are not finite become null.
  void log(int64_t step, const NamedNumbers& values);
  /// TensorBoard only.
  void picture(std::string_view tag, const Picture& picture, int64_t step);
  /// How the run ended.
  void end(bool success);

 private:
  std::filesystem::path folder_;
  std::unique_ptr<TensorBoard> board_;
  int fd_ = -1;
};

}  // namespace weft::support
