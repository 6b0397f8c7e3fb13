// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <new>
#include <utility>

#include "kernels/runtime.h"

namespace weft::data {

/// Host memory from which a device can be fed without an extra copy: pinned for a GPU.
class StagingMemory {
 public:
  StagingMemory() = default;
  StagingMemory(DeviceKind kind, size_t bytes) : kind_(kind) {
    if (bytes > 0) memory_ = kernels::runtime(kind).allocate_pinned(bytes);
    WEFT_CHECK(memory_ != nullptr || bytes == 0, "loader: cannot get ", bytes, " bytes of pinned memory");
  }
  StagingMemory(StagingMemory&& other) noexcept : kind_(other.kind_), memory_(std::exchange(other.memory_, nullptr)) {}
  StagingMemory& operator=(StagingMemory&& other) noexcept {
    std::swap(kind_, other.kind_);
    std::swap(memory_, other.memory_);
    return *this;
  }
  ~StagingMemory() {
    if (memory_ != nullptr) kernels::runtime(kind_).release_pinned(memory_);
  }

  template <class T>
  T* as() const {
    return static_cast<T*>(memory_);
  }

 private:
  DeviceKind kind_ = DeviceKind::cpu;
  void* memory_ = nullptr;
};

}  // namespace weft::data
