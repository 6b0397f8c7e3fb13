// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdio>

#include "tests/support/devices.h"

namespace weft::tests {

/// Every run, those on the emulated device as an A100 and as a Hopper.
template <class Body>
void on_both_generations(Body&& body) {
  for (const DeviceKind kind : device_runs())
    for (const int capability : {80, 90}) {
      if (kind != DeviceKind::simt && capability == 90) continue;
      const emulator::source::CapabilityScope scope(capability);
      body(kind);
    }
}

/// The runs on devices that have wgmma: the emulated one, and Hopper. Another GPU is left out, and that is said.
template <class Body>
void on_wgmma(Body&& body) {
  const emulator::source::CapabilityScope hopper(90);
  for (const DeviceKind kind : device_runs()) {
    if (kind == DeviceKind::cpu) continue;
    const std::string device = kernels::runtime(kind).describe(0);
    if (kind == DeviceKind::cuda && device.find(" H") == device.npos && device.find(" GH") == device.npos) {
      std::printf("SKIPPED on cuda: %s is no Hopper, whose wgmma this test is about\n", device.c_str());
      continue;
    }
    body(kind);
  }
}

}  // namespace weft::tests
