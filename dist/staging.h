// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <memory>

#include "core/stream.h"

namespace weft::dist {

/// Pinned host memory that grows as it is asked to; its old contents are lost then.
class PinnedMemory {
 public:
  explicit PinnedMemory(DeviceKind kind) : kind_(kind) {}
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  std::byte* at_least(size_t bytes);

 private:
  DeviceKind kind_;
  void* memory_ = nullptr;
  size_t bytes_ = 0;
};

/// What a group of the host needs for the tensors of one GPU: a stream for the copies, and where they go.
struct Staging {
  explicit Staging(Device device_)
      : device(device_), stream(device_), output(device_.kind), input(device_.kind), factor(device_.kind) {}

  /// Enqueues a copy on the stream.
  void copy(const char* name, void* to, const void* from, size_t bytes) const;

  const Device device;
  const Stream stream;
  PinnedMemory output, input, factor;
};

}  // namespace weft::dist
