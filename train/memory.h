// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "kernels/device.h"

namespace weft::train {

/// The most memory that this process has had resident so far, in bytes (host memory: getrusage).
int64_t peak_memory_bytes();

/// The most that tensors on a device took at once so far, in bytes.
int64_t peak_tensor_bytes(Device device);

}  // namespace weft::train
