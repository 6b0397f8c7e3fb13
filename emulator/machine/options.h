// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

#include "emulator/machine/gpu.h"
#include "emulator/machine/stream_order.h"

namespace emulator {

/// The options of `weft-emulate`. The program receives them as environment variables WEFT_EMULATE_GPU, _GPUS, _STREAMS,
/// _CHECK, _SEED, _THREADS, _BREAK, _COUNT, _PROFILE, _TIME, _TIME_WAVES, _TIME_TABLE, _TIME_KNOWN, _MEMORY, _REPORT,
/// _ERROR_EXITCODE; read once,
/// at the first call into the emulator. A wrong value ends the program with one line.
struct Options {
  const Gpu* gpu;
  int gpus = 1;
  uint64_t memory_mib = 0;  ///< memory of each GPU; 0: as the model has
  StreamOptions streams;
  uint64_t seed = 0;  ///< 0: fixed orders; else the seed for random orders of streams, blocks, warps and async copies
  int threads = 0;    ///< OS threads that run blocks; 0: all processors
  bool check_races = false, check_uninitialised = false, check_streams = false;
  std::string break_at;    ///< KERNEL[:LINE], or empty
  std::string profile;     ///< the file for the counts of each instruction, or empty
  bool count = false;      ///< whether to print each kernel's cost at the end
  bool time = false;       ///< whether to print each kernel's predicted time on the GPU at the end
  int time_waves = 0;      ///< waves of blocks to run per launch; 0: all
  std::string time_table;  ///< a file that gets the counts and predictions, or empty
  int exit_code = 86;      ///< exit code of a program with findings
  std::string report;      ///< a file to which findings are appended, a JSON object a line, or empty
  std::string time_known;  ///< a file of launches that were counted by earlier runs and do not run again, or empty
};

const Options& options();

/// The seed of new launches: options().seed, until another seed is set.
uint64_t seed();
void set_seed(uint64_t seed);

}  // namespace emulator
