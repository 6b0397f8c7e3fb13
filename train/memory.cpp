// SPDX-License-Identifier: Apache-2.0
#include "train/memory.h"

#include <sys/resource.h>

#include "kernels/runtime/allocator.h"

namespace weft::train {

int64_t peak_memory_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;  // Linux counts in KiB
}

int64_t peak_tensor_bytes(Device device) {
  return static_cast<int64_t>(kernels::CachingAllocator::of(device).stats().peak_live);
}

}  // namespace weft::train
