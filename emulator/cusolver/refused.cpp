// SPDX-License-Identifier: Apache-2.0
// These let every program link and load. The header is not included: they replace functions of any parameters.
namespace emulator::solver {
int refuse_call(const char* name) noexcept;
}

#define REFUSED(name) \
  extern "C" __attribute__((visibility("default"))) int name() { return emulator::solver::refuse_call(#name); }
#include "emulator/cusolver/refused.inc"
