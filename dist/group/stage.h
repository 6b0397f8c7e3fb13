// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <list>
#include <vector>

#include "core/stream.h"
#include "dist/group/link.h"
#include "kernels/runtime/pinned_memory.h"

namespace weft::dist {

/// A host group's resources for the tensors of a GPU: a stream for the copies, and pinned buffers.
struct Staging {
  explicit Staging(Device device_)
      : device(device_), stream(device_), output(device_.kind), input(device_.kind), factor(device_.kind) {}

  /// Enqueues a copy on the stream.
  void copy(const char* name, void* to, const void* from, size_t bytes) const;

  const Device device;
  const Stream stream;
  kernels::PinnedMemory output, input, factor;
};

/// The collective on host memory: the tensors' own on the CPU, pinned copies of a GPU's (in the staging of its device,
/// made at its first use). Applies each rank's factor. Waits for the copies. `ready`: when a GPU's tensors hold
/// their values. `scratch` takes an input that the factor must not change.
HostCollective stage_in(const Collective& collective, const Event* ready, std::list<Staging>& stagings,
                        std::vector<std::byte>& scratch, int size);

/// Copies the result back to the device, and waits for that.
void stage_out(const Collective& collective, const HostCollective& host, std::list<Staging>& stagings);

}  // namespace weft::dist
