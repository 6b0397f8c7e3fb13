// SPDX-License-Identifier: Apache-2.0
// So that every program links and loads. The header is not included: these stand for functions of any parameters, which
// a caller's registers and stack hold, and which nobody reads.
namespace emulator::cuda {
int refuse(const char* call);
}

#define REFUSED(name) \
  extern "C" __attribute__((visibility("default"))) int name() { return emulator::cuda::refuse(#name); }
#include "emulator/cuda/runtime/refused.inc"
#if EMULATOR_CUDART == 12
#include "emulator/cuda/runtime/refused_12.inc"
#endif
