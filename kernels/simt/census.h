// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

// What tests ask of the emulated CUDA runtime and driver, beyond CUDA's own functions.

namespace weft::emulator {

/// Calls that need a device from threads that had not named one (cudaSetDevice). On a node each would make a context of
/// its own on GPU 0, whichever GPU the process works on.
int64_t calls_without_device();

/// Whether the emulated driver takes tensor maps whose strides are smaller than what lies below them: yes at first, as
/// CUDA's is believed to.
void set_overlapping_maps(bool taken);

}  // namespace weft::emulator
