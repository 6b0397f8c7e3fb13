// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

namespace emulator {

/// Each thread's own T, made at its first use there. A `thread_local T` of some kilobytes would lie in the memory that
/// glibc keeps for libraries loaded late, of which a Python interpreter has less than 2 KiB.
template <class T>
T& per_thread() {
  static thread_local const std::unique_ptr<T> own = std::make_unique<T>();
  return *own;
}

}  // namespace emulator
