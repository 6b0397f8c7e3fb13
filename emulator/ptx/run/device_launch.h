// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "emulator/ptx/run/warp.h"

namespace emulator::ptx {

/// Launches by a grid's kernels (dynamic parallelism of CUDA 12, without waits of parents for children). Children run
/// when the grid has ended, which CUDA allows: blocks in any order, a block's launches in the order of their calls,
/// those in cudaStreamTailLaunch last.
class DeviceLaunches {
 public:
  DeviceLaunches() = default;
  ~DeviceLaunches();
  DeviceLaunches(const DeviceLaunches&) = delete;
  DeviceLaunches& operator=(const DeviceLaunches&) = delete;

  /// The memory into which the parent writes the child's parameters, or nullptr, with the error for its thread.
  /// `kernel`: its address. Errors: Fault.
  char* begin(const Warp& parent, int lane, uint64_t kernel, const Dim3& grid, const Dim3& block, uint32_t shared);
  /// Returns the runtime's error code.
  int launch(const Warp& parent, int lane, uint64_t parameters, uint64_t stream);
  /// The thread's last error; `forgets`: it is then cudaSuccess.
  int error(const Warp& parent, int lane, bool forgets);

  /// After the parent's last block.
  void run(const Launch& parent, uint64_t seed, Touched* touched);

 private:
  struct Child {
    const Kernel* kernel = nullptr;
    Dim3 grid, block;
    uint32_t shared = 0;
    uint64_t parent_block = 0;
    std::vector<char> parameters;
    bool is_last = false;
  };

  std::mutex mutex_;
  std::map<char*, Child> begun_;  ///< keyed by the memory of their parameters
  std::vector<Child> launched_;
  std::map<uint64_t, int> errors_;  ///< keyed by the thread in the grid
};

}  // namespace emulator::ptx
