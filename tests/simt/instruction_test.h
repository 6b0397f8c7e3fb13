// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gtest/gtest.h>

#include "kernels/cuda/capability.cuh"
#include "tests/simt/device_array.h"
#include "tests/support/devices.h"

// Tests of single instructions of Hopper are compiled twice: here for the emulator, in tests/hopper for the GPU itself,
// with WEFT_DEVICE=cuda. Both are compared with the same reference on the host, so the emulator's reading of the PTX ISA
// is tested on real hardware, too.

namespace weft::tests {

inline constexpr DeviceKind kKind = DeviceKind::WEFT_DEVICE;
inline const kernels::Queue kQueue{{kKind, 0}, nullptr};

template <class T>
class Array : public DeviceArray<T> {
 public:
  explicit Array(size_t size) : DeviceArray<T>(size, kKind) {}
  explicit Array(const std::vector<T>& host) : DeviceArray<T>(host, kKind) {}
};

/// Skips where the device is not there, or is another generation.
template <class Base>
class OnHopper : public Base {
 protected:
  void SetUp() override {
    if (!runs_on(kKind)) GTEST_SKIP() << "does not run on " << name(kKind) << " here";
    if (!kernels::WEFT_DEVICE::has_wgmma(kQueue))
      GTEST_SKIP() << "needs a GPU of compute capability 9.0, got " << kernels::WEFT_DEVICE::compute_capability(kQueue);
  }
};

}  // namespace weft::tests
