// SPDX-License-Identifier: Apache-2.0
#include "train/stop_rule.h"

#include "io/checkpoint.h"
#include "train/exit.h"
#include "train/shell_word.h"

namespace weft::train {

int exit_code(RunEnd end) { return end == RunEnd::requeue ? kExitRequeue : kExitOk; }

std::string StopRule::signal() { return stop_on_usr1_ ? "SIGUSR1" : sums_.stop_signal(); }

bool StopRule::wants_checkpoint() {
  if (!sums_.take_save_request()) return false;
  stop_on_usr1_ = options_.usr1_stops;
  return !stop_on_usr1_;
}

bool StopRule::must_stop(int64_t step) {
  return !signal().empty() || (options_.max_steps > 0 && step >= options_.max_steps);
}

std::string StopRule::reason() {
  const std::string name = signal();
  return name.empty() ? "--max-steps" : name;
}

RunEnd StopRule::end() {
  const std::string name = signal();
  return name == "SIGTERM" || name == "SIGHUP" || name == "SIGUSR1" ? RunEnd::requeue : RunEnd::stopped;
}

std::string StopRule::line(const std::string& program, int64_t step, const std::filesystem::path& folder) {
  return str("stopped by ", reason(), " after step ", step, "; continue with: ", program, " --config ",
             shell_word((folder / "config.toml").string()), " --max-steps 0 --resume auto --out ",
             shell_word(folder.string()));
}

}  // namespace weft::train
