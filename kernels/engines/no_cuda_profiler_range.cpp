// SPDX-License-Identifier: Apache-2.0
// Replaces cuda_profiler_range.cpp in a build without CUDA: no profiler watches.
#include "kernels/runtime/profiler_range.h"

namespace weft::kernels {

void push_profiler_range(const char*) {}
void pop_profiler_range() {}
void start_profiler_capture() {}
void stop_profiler_capture() {}

}  // namespace weft::kernels
