// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "emulator/machine/collective_time.h"

// The predicted clock of --time. An operation begins when its dependencies have ended, and no earlier than the last
// operation for which its host thread has waited. It ends after the predicted times of its work. The host's own work
// takes no time. Each process begins at 0; NCCL's collectives synchronise the clocks of ranks. Seconds everywhere. At
// the end it prints a line for each GPU, and adds its spans to the file of `--time-trace` (WEFT_EMULATE_TIME_TRACE).

namespace emulator {

struct Operation;

namespace timeline {

/// Whether the clock runs (--time).
bool on();
/// The links between GPUs: of `--cluster` (WEFT_EMULATE_CLUSTER), else of a node that has this GPU; nullptr: unknown. A
/// wrong name ends the program with one line.
const collective_time::Cluster* cluster();

/// This thread runs an operation's work while one lives.
class Running {
 public:
  explicit Running(Operation& op);
  ~Running();
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  Operation* before_;
};

// These concern the operation that this thread runs.

/// The time that its work has reached.
double now();
/// Its next part computes for `seconds`.
void compute(const std::string& what, double seconds);
/// Its next part communicates until `end`, from `begin`, when all ranks have come. `how`: `ring LL128`, or empty.
void communicate(const std::string& what, double begin, double end, const std::string& how);

/// The time until which this thread's host code has waited; its next operations begin no earlier.
double& host();

/// Rank `rank` of a communicator of `ranks` uses the device. The report names it by the largest communicator.
void name_rank(int device, int rank, int ranks);

}  // namespace timeline
}  // namespace emulator
