// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/device.h"

namespace weft::kernels {

/// A device and, for cuda, a stream (a cudaStream_t; null is the default stream).
/// Work on one queue runs in order; a kernel returns before its work is done. The CPU queue runs at once.
struct Queue {
  Device device{};
  void* stream = nullptr;
};

}  // namespace weft::kernels
