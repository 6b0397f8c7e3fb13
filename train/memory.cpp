// SPDX-License-Identifier: Apache-2.0
#include "train/memory.h"

#include <sys/resource.h>

namespace weft::train {

int64_t peak_memory_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;  // Linux counts in KiB
}

}  // namespace weft::train
