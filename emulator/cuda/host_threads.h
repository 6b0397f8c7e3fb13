// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>

namespace emulator::cuda {

/// Runs `work` at once on a thread that nobody else uses meanwhile.
void run_on_host_thread(std::function<void()> work);

}  // namespace emulator::cuda
