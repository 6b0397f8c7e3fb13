// SPDX-License-Identifier: Apache-2.0
// Programs built with CUDA_API_PER_THREAD_DEFAULT_STREAM call these: nullptr is the thread's own default stream.
#include "emulator/cuda/driver/call.h"

using emulator::cuda::PerThreadDefault;

#define PER_THREAD(name, suffix, parameters, arguments) \
  WEFT_EXPORT CUresult name##suffix parameters {        \
    const PerThreadDefault scope;                       \
    return name arguments;                              \
  }
#include "emulator/cuda/driver/per_thread.inc"
