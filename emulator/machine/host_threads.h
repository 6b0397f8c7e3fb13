// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>

namespace emulator {

/// Runs `work` immediately on a separate thread.
void run_on_host_thread(std::function<void()> work);

}  // namespace emulator
