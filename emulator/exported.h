// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

// libweft_gpu.so exports these C functions. A program finds them by dlsym(RTLD_DEFAULT, name): on a real GPU there are
// none.

extern "C" {

/// How many kernels have run so far in this process.
int64_t weft_emulator_launches(void);
/// Chooses the order of streams, blocks, warps and asynchronous copies from the next launch on; 0: fixed orders. Waits
/// for all work of all devices first.
void weft_emulator_set_seed(uint64_t seed);
}
