// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "kernels/device.h"

namespace weft {

/// The device that a flag names: `cpu`, `cuda`, `cuda:N`, `auto` (the first GPU, or the CPU if none is there), or
/// `emulated[:GPU]`. The last starts the program again under weft-emulate (core/emulated.h), so call this function
/// first. Errors: not such a text; a GPU that is not there (or a build without CUDA), with the devices that are.
Device choose_device(const std::string& text);

/// `cuda:0 (NVIDIA H200, …)`, `cpu (AMD EPYC …, 2 threads)`.
std::string describe(Device device);

}  // namespace weft
