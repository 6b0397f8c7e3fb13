// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace weft::train {

/// While a Signals lives, SIGINT, SIGTERM and, but for nohup, SIGHUP ask the program to stop, and SIGUSR1 asks for a
/// checkpoint (Slurm: `--signal=USR1@120`). The training loop looks at the flags between two steps. A second Ctrl-C
/// ends the process at once with exit code 130. SIGPIPE is ignored: a run does not end with the program that shows its
/// lines
/// (`2>&1 | tee log`). The handlers that were there before come back at the end, but for SIGUSR2, which belongs to the
/// groups (dist/group/watchdog.h).
class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  /// SIGINT, SIGTERM or SIGHUP has arrived.
  bool stop_requested() const;
  /// `SIGINT`, `SIGTERM`, `SIGHUP`, or "" when none has arrived.
  const char* stop_signal() const;
  /// SIGUSR1 has arrived since the last call.
  bool take_save_request();
};

}  // namespace weft::train
