// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>

namespace emulator::cuda {

/// The addresses of a loaded library that has CUDA's runtime inside; none where both are equal.
struct StaticRuntime {
  uintptr_t begin = 0, end = 0;
};
constexpr size_t kMostStaticRuntimes = 128;

}  // namespace emulator::cuda

/// static_runtime/audit.cpp fills this in. Beyond its size, libraries share one last error.
extern "C" emulator::cuda::StaticRuntime emulator_static_runtimes[emulator::cuda::kMostStaticRuntimes];
