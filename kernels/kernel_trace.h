// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/queue.h"
#include "kernels/view.h"

namespace weft::kernels {

/// Called on the calling thread after each kernel was enqueued, with its output (nullptr where it has none).
using KernelTrace = void (*)(const char* name, const Queue& queue, const View* output, void* context);

/// Sets the hook for the whole process; nullptr removes it. Not while kernels run on other threads.
void set_kernel_trace(KernelTrace trace, void* context);

/// Overrides the environment's WEFT_SYNC and WEFT_CHECK_NAN.
struct KernelChecks {
  bool synchronize = false;  ///< wait for each kernel, so that an error names the kernel that caused it
  bool not_finite = false;   ///< copy each output to the host and fail on the first NaN or infinity
};
void set_kernel_checks(KernelChecks checks);
KernelChecks kernel_checks();

}  // namespace weft::kernels
