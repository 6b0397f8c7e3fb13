// SPDX-License-Identifier: Apache-2.0
// These let every program link and load. The header is not included: they replace functions of any parameters.
namespace emulator::blas {
int refuse(const char* name) noexcept;
}

#define EXPORT extern "C" __attribute__((visibility("default")))
#define REFUSED(name) \
  EXPORT int name() { return emulator::blas::refuse(#name); }
#define OLDER(name) \
  EXPORT int name() { return emulator::blas::refuse(#name " of cublas.h, the API before cublas_v2.h,"); }
#include "emulator/cublas/refused.inc"
