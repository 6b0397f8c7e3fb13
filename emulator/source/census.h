// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

// Queries of tests to the emulated CUDA runtime and driver, beyond CUDA's own functions.

namespace emulator::source {

/// Calls that need a device from threads that had not named one (cudaSetDevice). On a node each would make a context of
/// its own on GPU 0, whichever GPU the process works on.
int64_t calls_without_device();
namespace api {
/// Counts such a call: CUDA takes the thread's device, which is number 0 until the thread sets another.
void use_device();
}  // namespace api

/// Whether the emulated driver takes tensor maps whose strides are smaller than what lies below them: yes at first, as
/// CUDA's is believed to.
void set_overlapping_maps(bool taken);

}  // namespace emulator::source
