// SPDX-License-Identifier: Apache-2.0
#include <cuda_profiler_api.h>
#include <nvtx3/nvToolsExt.h>

#include "kernels/runtime/profiler_range.h"

namespace weft::kernels {

void push_profiler_range(const char* name) { nvtxRangePushA(name); }
void pop_profiler_range() { nvtxRangePop(); }

// Without a GPU these fail, and there is nothing to record.
void start_profiler_capture() { static_cast<void>(cudaProfilerStart()); }
void stop_profiler_capture() { static_cast<void>(cudaProfilerStop()); }

}  // namespace weft::kernels
