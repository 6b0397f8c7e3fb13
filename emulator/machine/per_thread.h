// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

namespace emulator {

/// Returns this thread's T, made at its first call. A `thread_local T` of some kilobytes would not fit into the 2 KiB
/// that glibc keeps for libraries loaded late, by a Python interpreter for example.
template <class T>
T& per_thread() {
  static thread_local const std::unique_ptr<T> own = std::make_unique<T>();
  return *own;
}

}  // namespace emulator
