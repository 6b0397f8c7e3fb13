// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gtest/gtest.h>

#include <vector>

#include "kernels/cuda/capability.cuh"
#include "kernels/runtime/queue.h"
#include "kernels/runtime/runtime.h"
#include "tests/support/devices.h"
#include "tests/support/emulator_seed.h"

// Tests of single instructions of Hopper, on the emulated GPU and on a real one: both are compared with one reference on
// the host, so the emulator's reading of the PTX ISA is tested on the hardware, too.

namespace weft::tests {

inline const kernels::Queue kQueue{{DeviceKind::cuda, 0}, nullptr};

/// An array in the GPU's memory.
template <class T>
class Array {
 public:
  explicit Array(size_t size) : size_(size), data_(static_cast<T*>(gpu().allocate(0, size * sizeof(T)))) {}
  explicit Array(const std::vector<T>& host) : Array(host.size()) {
    gpu().copy(0, data_, host.data(), size_ * sizeof(T), nullptr);
    gpu().synchronize_stream(0, nullptr);
  }
  ~Array() { gpu().release(0, data_); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  T* data() const { return data_; }
  std::vector<T> host() const {
    std::vector<T> host(size_);
    gpu().copy(0, host.data(), data_, size_ * sizeof(T), nullptr);
    gpu().synchronize_stream(0, nullptr);
    return host;
  }

 private:
  static kernels::Runtime& gpu() { return kernels::runtime(DeviceKind::cuda); }
  size_t size_;
  T* data_;
};

/// Skips where the GPU is not there, or is of another generation.
template <class Base>
class OnHopper : public Base {
 protected:
  void SetUp() override {
    if (!runs_on(DeviceKind::cuda)) GTEST_SKIP() << "needs the device cuda";
    if (!kernels::cuda::has_wgmma(kQueue))
      GTEST_SKIP() << "needs a GPU of compute capability 9.0, got " << kernels::cuda::compute_capability(kQueue);
  }
};

/// The error of `body`, or of the GPU at the wait after, or an empty text.
template <class Body>
std::string error_of(Body&& body) {
  try {
    body();
    kernels::runtime(DeviceKind::cuda).synchronize_device(0);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

}  // namespace weft::tests
