// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace emulator::ptx {

struct Kernel;

/// What --count adds up and prints when the program ends: where the time of emulated kernels goes.
struct Count {
  uint64_t warp_instructions = 0;
  uint64_t lane_instructions = 0;  ///< of lanes that execute, guards considered
  double seconds = 0;              ///< of the OS threads that ran blocks, together
};

bool counts();
/// Processor time of this thread, in seconds.
double thread_seconds();
void count_compilation(const Kernel& kernel, double seconds);
void count_launch(const Kernel& kernel, const Count& count);

}  // namespace emulator::ptx
