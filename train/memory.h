// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace weft::train {

/// The most memory that this process has had resident so far, in bytes (host memory: getrusage).
int64_t peak_memory_bytes();

}  // namespace weft::train
