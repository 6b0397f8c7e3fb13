// SPDX-License-Identifier: Apache-2.0
// These let every program link and load; see runtime/refused.cpp. CUDA_ERROR_NOT_SUPPORTED has the runtime's number.
namespace emulator::cuda {
int refuse(const char* call, bool remembered);
}

#define REFUSED(name) \
  extern "C" __attribute__((visibility("default"))) int name() { return emulator::cuda::refuse(#name, false); }
#include "emulator/cuda/driver/refused.inc"
