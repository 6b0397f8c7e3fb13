// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "kernels/queue.h"
#include "kernels/runtime.h"

namespace weft::tests {

/// The devices that kernel tests run on: each is held against the same f64 reference. The emulated GPU joins with the
/// first kernels that it has; a GPU where there is one.
inline std::vector<DeviceKind> test_devices() { return {DeviceKind::cpu}; }

inline kernels::Queue queue_on(DeviceKind kind) { return {{kind, 0}, nullptr}; }

}  // namespace weft::tests
