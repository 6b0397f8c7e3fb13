// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <driver_types.h>

namespace emulator::cuda {

/// A cudaUserObject_t points at it: an object of the program that graphs keep alive.
struct UserObject {
  void* object = nullptr;
  cudaHostFn_t destroy = nullptr;
  unsigned references = 0;
};

/// Under the state's lock or, when the last graph goes, without: counts are atomic.
void retain(UserObject& object, unsigned count);
void release(UserObject& object, unsigned count);

}  // namespace emulator::cuda
