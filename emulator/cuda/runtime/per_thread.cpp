// SPDX-License-Identifier: Apache-2.0
// Programs built with --default-stream per-thread call these: nullptr is the thread's own default stream.
#include "emulator/cuda/runtime/call.h"

using emulator::cuda::PerThreadDefault;

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // old programs call what new ones should not

#define DEFINE(symbol, name, parameters, arguments) \
  WEFT_EXPORT cudaError_t symbol parameters {       \
    const PerThreadDefault scope;                   \
    return name arguments;                          \
  }
#define JOIN(name, suffix) name##suffix
// Through a second macro, so that a name that call.h replaces is replaced before the suffix is appended.
#define PER_THREAD_EXPANDED(name, suffix, parameters, arguments) DEFINE(JOIN(name, suffix), name, parameters, arguments)
#define PER_THREAD(name, suffix, parameters, arguments) PER_THREAD_EXPANDED(name, suffix, parameters, arguments)
#include "emulator/cuda/runtime/per_thread.inc"
