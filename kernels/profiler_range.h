// SPDX-License-Identifier: Apache-2.0
#pragma once

// Marks for NVIDIA's profilers (nsys, ncu). Without CUDA in the build, and without a profiler around the
// process, these do nothing.

namespace weft::kernels {

/// Opens and closes a named stretch of this thread's time (NVTX). The name is copied.
void push_profiler_range(const char* name);
void pop_profiler_range();

/// Where `nsys profile -c cudaProfilerApi` begins and ends to record.
void start_profiler_capture();
void stop_profiler_capture();

}  // namespace weft::kernels
