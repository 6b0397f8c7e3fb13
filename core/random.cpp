// SPDX-License-Identifier: Apache-2.0
#include "core/random.h"

#include <array>
#include <map>
#include <mutex>

namespace weft {
namespace {

struct Entry {
  Generator generator;
  Tensor state;             // {seed, base} on the device
  uint64_t state_seed = 0;  // the seed that `state` holds
};

uint64_t default_seed = 0;
std::mutex& mutex() {
  static std::mutex* const instance = new std::mutex;
  return *instance;
}

Entry& entry(Device device) {
  static auto* const entries = new std::map<std::pair<int, int>, Entry>;
  auto [found, made] = entries->try_emplace({static_cast<int>(device.kind), device.index});
  if (made) found->second.generator.seed = default_seed;
  return found->second;
}

}  // namespace

Generator& generator(Device device) {
  const std::lock_guard lock(mutex());
  return entry(device).generator;
}

void manual_seed(uint64_t seed) {
  const std::lock_guard lock(mutex());
  default_seed = seed;
  for (const DeviceKind kind : {DeviceKind::cpu, DeviceKind::simt}) entry({kind, 0}).generator = {seed, 0};
  for (int index = 0; index < 16; ++index) entry({DeviceKind::cuda, index}).generator = {seed, 0};
}

Tensor random_state(Device device) {
  const std::lock_guard lock(mutex());
  Entry& e = entry(device);
  if (!e.state.defined() || e.state_seed != e.generator.seed) {
    e.state = Tensor::from<int64_t>({static_cast<int64_t>(e.generator.seed), 0}, device);
    e.state_seed = e.generator.seed;
  }
  return e.state;
}

}  // namespace weft
