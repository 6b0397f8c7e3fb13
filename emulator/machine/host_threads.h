// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>

namespace emulator {

/// Runs `work` at once on a thread of its own.
void run_on_host_thread(std::function<void()> work);

}  // namespace emulator
