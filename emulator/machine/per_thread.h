// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/syscall.h>
#include <unistd.h>

namespace emulator {

/// Returns this thread's T, made at its first call. A `thread_local T` of some kilobytes would not fit into the 2 KiB
/// that glibc keeps for libraries loaded late, by a Python interpreter for example. The first thread's T never ends:
/// destructors of a program's static objects call CUDA, too, and run after those of its thread.
template <class T>
T& per_thread() {
  static thread_local T* own = nullptr;
  struct End {
    ~End() {
      if (syscall(SYS_gettid) == getpid()) return;
      delete own;
      own = nullptr;
    }
  };
  if (!own) {
    static thread_local const End end;
    own = new T;
  }
  return *own;
}

}  // namespace emulator
