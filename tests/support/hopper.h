// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gtest/gtest.h>

#include "kernels/runtime/capability_scope.h"
#include "tests/support/devices.h"

namespace weft::tests {

/// Empty where the first GPU is a Hopper, else why a test is skipped.
inline std::string why_no_wgmma() {
  if (!runs_on(DeviceKind::cuda)) return "needs the device cuda";
  const std::string gpu = kernels::runtime(DeviceKind::cuda).describe(0);
  if (gpu.find(" H") != gpu.npos || gpu.find(" GH") != gpu.npos) return "";
  return gpu + " is no Hopper, whose wgmma this test is about";
}

/// Runs on every device unchanged, and on a GPU other than an A100 also as an A100.
template <class Body>
void on_both_generations(Body&& body) {
  for (const DeviceKind kind : test_devices()) {
    body(kind);
    if (kind == DeviceKind::cpu || kernels::runtime(kind).describe(0).find("A100") != std::string::npos) continue;
    const kernels::CapabilityScope ampere(80);
    body(kind);
  }
}

/// The device that has wgmma, as if it had two multiprocessors: each block walks over many tiles. A real device also
/// runs unchanged.
template <class Body>
void on_wgmma(Body&& body) {
  if (const std::string why = why_no_wgmma(); !why.empty()) GTEST_SKIP() << why;
  if (!emulated()) body(DeviceKind::cuda);
  const kernels::MultiprocessorScope few(2);
  body(DeviceKind::cuda);
}

}  // namespace weft::tests
