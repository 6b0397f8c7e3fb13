// SPDX-License-Identifier: Apache-2.0
#include "emulator/cuda/user_object.h"

#include <mutex>

#include "emulator/machine/host_threads.h"

namespace emulator::cuda {
namespace {

std::mutex counts;

}  // namespace

void retain(UserObject& object, unsigned count) {
  const std::lock_guard lock(counts);
  object.references += count;
}

void release(UserObject& object, unsigned count) {
  {
    const std::lock_guard lock(counts);
    object.references -= count < object.references ? count : object.references;
    if (object.references > 0) return;
  }
  // The program's function may make any call, so no lock of ours is held meanwhile.
  run_on_host_thread([&object] {
    object.destroy(object.object);
    delete &object;
  });
}

}  // namespace emulator::cuda
