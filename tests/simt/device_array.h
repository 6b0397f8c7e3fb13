// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "emulator/source/simt.h"
#include "kernels/queue.h"
#include "kernels/runtime.h"
#include "kernels/view.h"

namespace weft::tests {

inline const kernels::Queue kSimt{{DeviceKind::simt, 0}, nullptr};

/// An array in a device's memory, that of the emulated one unless told otherwise.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(size_t size, DeviceKind kind = DeviceKind::simt)
      : kind_(kind), size_(size), data_(static_cast<T*>(runtime().allocate(0, size * sizeof(T)))) {}
  explicit DeviceArray(const std::vector<T>& host, DeviceKind kind = DeviceKind::simt)
      : DeviceArray(host.size(), kind) {
    runtime().copy(0, data_, host.data(), size_ * sizeof(T), nullptr);
  }
  ~DeviceArray() { runtime().release(0, data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() const { return data_; }
  std::vector<T> host() const {
    std::vector<T> host(size_);
    runtime().copy(0, host.data(), data_, size_ * sizeof(T), nullptr);
    runtime().synchronize_stream(0, nullptr);
    return host;
  }
  kernels::View view() const { return kernels::View::dense(data_, dtype_of<T>, {static_cast<int64_t>(size_)}); }

 private:
  kernels::Runtime& runtime() const { return kernels::runtime(kind_); }
  DeviceKind kind_;
  size_t size_;
  T* data_;
};

/// Runs `body` with the fixed schedule and with several random ones, and restores the fixed one.
template <class Body>
void for_each_schedule(Body&& body) {
  for (const uint64_t seed : {0, 1, 2, 3}) {
    emulator::source::set_schedule_seed(seed);
    body();
  }
  emulator::source::set_schedule_seed(0);
}

/// What `body` threw, or the device when it was waited for, or an empty string.
template <class Body>
std::string error_of(Body&& body) {
  try {
    body();
    kernels::runtime(DeviceKind::simt).synchronize_device(0);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

}  // namespace weft::tests
