// SPDX-License-Identifier: Apache-2.0
#pragma GCC visibility push(default)
#include <cublas_v2.h>
#pragma GCC visibility pop

#include "emulator/cublas/gemm.h"

using namespace emulator::blas;

#define ENTRIES "emulator/cublas/matrix_entries.inc"
#include "emulator/cublas/entries.inc"
