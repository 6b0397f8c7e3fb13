// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

#include "emulator/machine/gpu.h"

namespace emulator {

/// How streams use the freedom that CUDA gives them.
enum class StreamOrder {
  inorder,  ///< work runs as soon as it may, stream by stream in the order of the calls
  lazy,     ///< nothing runs until somebody waits for it: the host is as far ahead as it can get
  random,   ///< by seed: any work whose dependencies are done, at any moment
  starve,   ///< as inorder, but for stream number K (in order of creation; 0: the legacy default stream): as lazy
};

/// What `weft-emulate` was asked for. It reaches the program as environment variables WEFT_EMULATE_GPU, _GPUS, _STREAMS,
/// _CHECK, _SEED, _THREADS, _BREAK, _COUNT; read once, at the first call into the emulator. A wrong value ends the program
/// with one line.
struct Options {
  const Gpu* gpu;
  int gpus = 1;
  StreamOrder streams = StreamOrder::inorder;
  int starved = 0;
  uint64_t seed = 0;  ///< 0: fixed orders everywhere; else of streams, blocks, warps and asynchronous copies
  int threads = 0;    ///< OS threads that run blocks; 0: all processors
  bool check_races = false, check_bounds = true, check_uninitialised = false, check_streams = false;
  std::string break_at;  ///< KERNEL[:LINE], or empty
  bool count = false;    ///< print at the end what each kernel cost
};

const Options& options();

}  // namespace emulator
