// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

#include "emulator/machine/gpu.h"
#include "emulator/machine/stream_order.h"

namespace emulator {

/// What `weft-emulate` was asked for. It reaches the program as environment variables WEFT_EMULATE_GPU, _GPUS, _STREAMS,
/// _CHECK, _SEED, _THREADS, _BREAK, _COUNT, _PROFILE, _TIME, _TIME_WAVES, _TIME_TABLE, _TIME_KNOWN; read once, at the first
/// call into the emulator. A wrong value ends the program with one line.
struct Options {
  const Gpu* gpu;
  int gpus = 1;
  StreamOptions streams;
  uint64_t seed = 0;  ///< 0: fixed orders everywhere; else of streams, blocks, warps and asynchronous copies
  int threads = 0;    ///< OS threads that run blocks; 0: all processors
  bool check_races = false, check_bounds = true, check_uninitialised = false, check_streams = false;
  std::string break_at;  ///< KERNEL[:LINE], or empty
  std::string profile;   ///< the file for the counts of each instruction, or empty
  bool count = false;    ///< print at the end what each kernel cost
  bool time = false;     ///< print at the end how long each kernel would take on the GPU
  int time_waves = 0;    ///< of each launch, run only so many waves of blocks; 0: all
  std::string time_table;  ///< a file that gets the counts and predictions, or empty
  std::string time_known;  ///< a file of launches that were counted by earlier runs and do not run again, or empty
};

const Options& options();

/// The seed of launches that begin now: options().seed, until another one is set.
uint64_t seed();
void set_seed(uint64_t seed);

}  // namespace emulator
