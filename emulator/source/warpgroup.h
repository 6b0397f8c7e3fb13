// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <vector>

#include "emulator/source/kernel_api.h"

namespace emulator::source {

/// barrier.sync and barrier.arrive with a number and a count of threads.
struct NamedBarrier {
  int threads = 0;  ///< that it waits for; 0: unused
  int arrived = 0;
  SourceLine first{};
  std::vector<int> waiting;
};

/// The registers of the multiprocessor as setmaxnreg distributes them, in registers per thread of each warp.
struct RegisterFile {
  static constexpr int kAll = 65536;

  std::array<int, 32> of_warp{};
  int free = 0;
  struct Waiter {
    int warp, wanted;
  };
  std::vector<Waiter> waiting;  ///< whole warps

  void begin(int threads);
};

}  // namespace emulator::source
