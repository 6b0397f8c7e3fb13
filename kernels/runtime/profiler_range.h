// SPDX-License-Identifier: Apache-2.0
#pragma once

// Marks for NVIDIA's profilers (nsys, ncu). Without CUDA in the build, and without a profiler around the
// process, these do nothing.

namespace weft::kernels {

/// Opens and closes a named NVTX range of this thread. The name is copied.
void push_profiler_range(const char* name);
void pop_profiler_range();

/// Starts and stops recording under `nsys profile -c cudaProfilerApi`.
void start_profiler_capture();
void stop_profiler_capture();

}  // namespace weft::kernels
