// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <driver_types.h>

#include <atomic>
#include <memory>

namespace emulator::cuda {

struct Graph;

/// A cudaGraphConditionalHandle stands for this: a value that kernels set and conditional nodes ask. All executable
/// graphs that were made from the handle's graph share it, so their launches must not overlap.
struct Condition {
  cudaGraphConditionalHandle handle = 0;
  unsigned launch_value = 0;
  bool has_launch_value = false;
  std::atomic<unsigned> value{0};
  std::atomic<bool> known{false};  ///< since the launch began

  /// A launch of the graph begins.
  void begin();
};

/// Errors: cudaErrorInvalidValue. Under the state's lock.
std::shared_ptr<Condition> make_condition(Graph& graph, unsigned launch_value, unsigned flags);
std::shared_ptr<Condition> condition_of(cudaGraphConditionalHandle handle);

}  // namespace emulator::cuda
