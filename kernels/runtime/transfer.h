// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/kernel.h"

namespace weft::kernels {

/// Enqueues a copy of `bytes` bytes between any of host, pinned and the queue's device's memory. Observers see it as a
/// kernel of the given name (a string literal; kernel_trace.h).
void transfer(const Queue& queue, const char* name, void* to, const void* from, size_t bytes);

}  // namespace weft::kernels
