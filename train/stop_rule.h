// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

#include "train/record/step_sums.h"

namespace weft::train {

/// How a run ended.
enum class RunEnd {
  finished,  ///< the last epoch is done
  stopped,   ///< stopped by Ctrl-C or --max-steps
  requeue,   ///< stopped by a signal of the batch system: to be submitted again
};

/// 75 for requeue (exit.h), else 0.
int exit_code(RunEnd end);

struct StopOptions {
  int64_t max_steps = 0;    ///< limit of the whole run; 0: no limit
  bool usr1_stops = false;  ///< SIGUSR1 ends the run after its checkpoint
};

/// When a run stops before its end, and when it saves on the way: SIGINT and SIGTERM stop, SIGUSR1 saves, as of the
/// last StepSums::read(), so that all ranks give the same answer after a step.
class StopRule {
 public:
  StopRule(StepSums& sums, StopOptions options) : sums_(sums), options_(options) {}

  /// To be asked once after each step. True: a checkpoint is wanted now, and the run goes on.
  bool wants_checkpoint();
  bool must_stop(int64_t step);
  /// The cause of the stop: `SIGTERM`, `--max-steps`.
  std::string reason();
  /// The end of a run after must_stop().
  RunEnd end();
  /// `stopped by SIGTERM after step 40; continue with: PROGRAM --config FOLDER/config.toml … --resume auto --out
  /// FOLDER`.
  std::string line(const std::string& program, int64_t step, const std::filesystem::path& folder);

 private:
  std::string signal();

  StepSums& sums_;
  StopOptions options_;
  bool stop_on_usr1_ = false;
};

}  // namespace weft::train
