// SPDX-License-Identifier: Apache-2.0
#include "emulator/exported_counts.h"

#include "emulator/cuda/device.h"
#include "emulator/cuda/stream.h"
#include "emulator/ptx/time/profile.h"

void weft_emulator_count(weft_emulator_counts* counts) {
  emulator::Lock lock = emulator::lock_state();
  for (int device = 0; device < emulator::cuda::Device::count(); ++device) emulator::cuda::device_synchronize(lock, device);
  emulator::ptx::count_launches(counts);
}
