// SPDX-License-Identifier: Apache-2.0
#pragma GCC visibility push(default)
#include <cublas_v2.h>
#pragma GCC visibility pop

#include "emulator/cublas/vectors.h"

using namespace emulator::blas;

#define JOIN_PLAIN(a, b) a##b
#define JOIN(a, b) JOIN_PLAIN(a, b)

extern "C" {

#define Int int
#define NAME(name) JOIN(name, )
#include "emulator/cublas/vector_entries.inc"
#undef Int
#undef NAME

#define Int int64_t
#define NAME(name) JOIN(name, _64)
#include "emulator/cublas/vector_entries.inc"
#undef Int
#undef NAME

}  // extern "C"
