// SPDX-License-Identifier: Apache-2.0
// These let every program link and load. The header is not included: they replace functions of any parameters, which
// stay unread in the caller's registers and stack.
namespace emulator::cuda {
int refuse(const char* call, bool remembered);
}

#define REFUSED(name) \
  extern "C" __attribute__((visibility("default"))) int name() { return emulator::cuda::refuse(#name, true); }
#include "emulator/cuda/runtime/refused.inc"
#if EMULATOR_CUDART == 12
#include "emulator/cuda/runtime/refused_12.inc"
#endif
