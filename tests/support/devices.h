// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/runtime/queue.h"
#include "kernels/runtime/runtime.h"

namespace weft::tests {

/// Do the tests run on this device? On every one that is there; WEFT_TEST_DEVICES=cpu,cuda names some. A named device
/// that is not there is an error: a run that was asked to test the GPU must not pass without one.
inline bool runs_on(DeviceKind kind) {
  const auto there = [kind] { return kernels::runtime(kind).device_count() > 0; };
  const char* const chosen = std::getenv("WEFT_TEST_DEVICES");
  if (chosen == nullptr) return there();
  bool named = false;
  std::istringstream names(chosen);
  for (std::string one; std::getline(names, one, ',');) {
    if (one != "cpu" && one != "cuda")
      throw std::runtime_error("WEFT_TEST_DEVICES: expected some of cpu,cuda, got '" + one + "'");
    named |= one == name(kind);
  }
  if (named && !there())
    throw std::runtime_error("WEFT_TEST_DEVICES names " + std::string(name(kind)) +
                             ", but there is none on this machine");
  return named;
}

/// Is the GPU weft-emulate's?
inline bool emulated() { return std::getenv("WEFT_EMULATE_GPU") != nullptr; }

/// The devices of the tests: each is compared with the same reference.
inline std::vector<DeviceKind> test_devices() {
  std::vector<DeviceKind> devices;
  for (const DeviceKind kind : {DeviceKind::cpu, DeviceKind::cuda})
    if (runs_on(kind)) devices.push_back(kind);
  return devices;
}

inline kernels::Queue queue_on(DeviceKind kind) { return {{kind, 0}, nullptr}; }

}  // namespace weft::tests

namespace weft {

/// GoogleTest prints a parameter of a test with this.
inline void PrintTo(DeviceKind kind, std::ostream* out) { *out << name(kind); }

}  // namespace weft
