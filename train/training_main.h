// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "train/exit.h"

namespace weft::train {

/// guarded_main() of a program that trains. Outside the training loop SIGTERM ends the process at once with exit code
/// 75: while the program reads its data, and after the last epoch. The next attempt does the rest. In a job of several
/// ranks the process ends by the signal itself until all ranks have joined, and after a failure of a rank: the launcher
/// may send SIGTERM for that failure, and the job must not be submitted again. SIGUSR1 waits for the
/// first step.
int training_main(const std::string& program, const std::function<int()>& body);

/// From here on the loop keeps SIGTERM and looks at it between two steps. Signals and Engine::run() begin with it.
void training_begins();
/// The loop has come to its end, or something else is done first that takes long.
void training_pauses();

}  // namespace weft::train
