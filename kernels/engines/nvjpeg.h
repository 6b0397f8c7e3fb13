// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <span>
#include <string>

// JPEGs decoded by NVIDIA's nvJPEG on a GPU.

namespace weft::kernels::vendor::nvjpeg {

/// Why it cannot be used, with the cure; empty where it can.
const std::string& missing();

/// A YCbCr JPEG of these sizes to rgb [height, width, 3] in host memory, which is there on return. Threads that decode
/// at a time have a decoder and a stream each. False: nvJPEG refuses the file (damaged, of another kind, or of other
/// sizes). Thread-safe. Errors: those of the device; missing() is not empty.
bool decode(int gpu, std::span<const uint8_t> jpeg, int64_t height, int64_t width, uint8_t* rgb);

}  // namespace weft::kernels::vendor::nvjpeg
