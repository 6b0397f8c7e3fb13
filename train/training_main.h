// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "train/exit.h"

namespace weft::train {

/// guarded_main() of a program that trains. SIGTERM ends it at once with exit code 75 where no training loop keeps it:
/// while the program reads its data, and in what follows the last epoch. What it has not done, the next attempt does.
/// In a job of several ranks the process ends by the signal itself as long as not all have joined, and when one of them
/// has failed: a launcher may send it for that reason, and the job is not to be submitted again. SIGUSR1 waits for the
/// first step.
int training_main(const std::string& program, const std::function<int()>& body);

/// From here on the loop keeps SIGTERM and looks at it between two steps. Signals and Engine::run() begin with it.
void training_begins();
/// The loop has come to its end, or something else is done first that takes long.
void training_pauses();

}  // namespace weft::train
