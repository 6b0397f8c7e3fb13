// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>

#include "emulator/source/kernel_api.h"

namespace emulator::source {

class Worker;

/// An observer of running kernels in the plain build (count.cpp). The checked build uses none.
class Watcher {
 public:
  virtual ~Watcher() = default;
  virtual void block_begins(Worker& worker) = 0;
  virtual void block_ends() = 0;
  /// All threads of the block have met in a barrier.
  virtual void barrier() = 0;
  /// Lanes of this warp have met in a __syncwarp.
  virtual void sync_warp(int warp) = 0;
  /// The running thread reads shared memory through an emulated instruction.
  virtual void read(const void* address, size_t bytes, SourceLine where) = 0;
  /// The running thread issues a cp.async.
  virtual void copy(const void* destination, size_t bytes, const void* source, size_t source_bytes,
                    SourceLine where) = 0;
};

/// nullptr: none. Set while no kernel runs.
extern Watcher* watcher;

}  // namespace emulator::source
