// SPDX-License-Identifier: Apache-2.0
#include "emulator/exported.h"

#include "emulator/cuda/device.h"
#include "emulator/cuda/stream.h"
#include "emulator/cuda/work.h"
#include "emulator/machine/options.h"

using namespace emulator;

int64_t weft_emulator_launches() { return cuda::kernels_run(); }

void weft_emulator_set_seed(uint64_t seed) {
  Lock lock = lock_state();
  // The scheduler changes its order only while it has no work.
  for (int device = 0; device < cuda::Device::count(); ++device) cuda::device_synchronize(lock, device);
  StreamOptions streams = options().streams;
  if (seed != 0)
    streams = {.order = StreamOrder::random, .seed = seed};
  else if (streams.order == StreamOrder::random)
    streams.order = StreamOrder::inorder;
  cuda::scheduler().set_options(lock, streams);
  set_seed(seed);
}
