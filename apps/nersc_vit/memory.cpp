// SPDX-License-Identifier: Apache-2.0
#include "apps/nersc_vit/memory.h"

#include "apps/support/memory.h"
#include "kernels/runtime.h"

namespace weft::nersc_vit {

double memory_in_use(Device device) {
  if (device.kind != DeviceKind::cuda) return static_cast<double>(support::peak_memory_bytes()) / (1 << 30);
  size_t free = 0, total = 0;
  kernels::runtime(device.kind).memory_info(device.index, free, total);
  return static_cast<double>(total - free) / (1 << 30);
}

}  // namespace weft::nersc_vit
