// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "kernels/queue.h"
#include "kernels/runtime.h"

namespace weft::tests {

/// The devices that kernel tests run on: each is held against the same f64 reference. A GPU joins where there is one.
inline std::vector<DeviceKind> test_devices() {
  std::vector<DeviceKind> devices{DeviceKind::cpu, DeviceKind::simt};
  if (kernels::cuda::runtime().device_count() > 0) devices.push_back(DeviceKind::cuda);
  return devices;
}

inline kernels::Queue queue_on(DeviceKind kind) { return {{kind, 0}, nullptr}; }

}  // namespace weft::tests
