// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <utility>

#include "kernels/device.h"

namespace weft::kernels {

class Runtime;

/// Host memory from and to which a kind of device copies without staging: pinned for a GPU. Freed memory is cached for
/// reuse, since pinning takes as long as copying; the last user must have waited for its copies.
class PinnedMemory {
 public:
  explicit PinnedMemory(DeviceKind kind = DeviceKind::cpu) : kind_(kind) {}
  /// Errors: the host has no such memory left; `user` names the caller in its text.
  PinnedMemory(DeviceKind kind, size_t bytes, const char* user) : kind_(kind) { at_least(bytes, user); }
  PinnedMemory(PinnedMemory&& other) noexcept { swap(other); }
  PinnedMemory& operator=(PinnedMemory&& other) noexcept {
    swap(other);
    return *this;
  }
  ~PinnedMemory();

  /// Grows to `bytes` if smaller; the contents are then lost. Returns nullptr if no bytes were ever requested.
  std::byte* at_least(size_t bytes, const char* user);
  DeviceKind kind() const { return kind_; }
  template <class T>
  T* as() const {
    return static_cast<T*>(memory_);
  }

 private:
  void swap(PinnedMemory& other) noexcept {
    std::swap(kind_, other.kind_);
    std::swap(runtime_, other.runtime_);
    std::swap(memory_, other.memory_);
    std::swap(bytes_, other.bytes_);
  }
  void give_back() noexcept;

  DeviceKind kind_ = DeviceKind::cpu;
  Runtime* runtime_ = nullptr;  ///< owner of the memory
  void* memory_ = nullptr;
  size_t bytes_ = 0;
};

/// Releases all cached memory that is not in use, for all kinds. Returns its bytes.
size_t release_kept_pinned_memory();

}  // namespace weft::kernels
