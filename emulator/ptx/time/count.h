// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace emulator::ptx {

struct Kernel;

/// The numbers that --count adds up and prints at the program's end: the cost of emulated kernels.
struct Count {
  uint64_t warp_instructions = 0;
  uint64_t lane_instructions = 0;  ///< counts executing lanes, guards considered
  double seconds = 0;              ///< total of the OS threads that ran blocks
};

bool counts();
/// Processor time of this thread, in seconds.
double thread_seconds();
void count_compilation(const Kernel& kernel, double seconds);
void count_launch(const Kernel& kernel, const Count& count);

}  // namespace emulator::ptx
