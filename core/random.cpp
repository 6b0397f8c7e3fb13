// SPDX-License-Identifier: Apache-2.0
#include "core/random.h"

#include <map>
#include <mutex>

namespace weft {
namespace {

struct Entry {
  Generator generator;
  Tensor state;             // {seed, base} on the device
  uint64_t state_seed = 0;  // the seed that `state` holds
  Tensor captured_state;    // instead, while a graph is captured
};

Tensor state_of(uint64_t seed, Device device) { return Tensor::from<int64_t>({static_cast<int64_t>(seed), 0}, device); }

uint64_t default_seed = 0;
std::mutex& mutex() {
  static std::mutex* const instance = new std::mutex;
  return *instance;
}

using Entries = std::map<std::pair<int, int>, Entry>;
thread_local Entries* own_entries = nullptr;

Entries& process_entries() {
  static auto* const entries = new Entries;
  return *entries;
}

Entry& entry(Device device) {
  Entries& entries = own_entries ? *own_entries : process_entries();
  auto [found, made] = entries.try_emplace({static_cast<int>(device.kind), device.index});
  if (made) found->second.generator.seed = default_seed;
  return found->second;
}

}  // namespace

struct ThreadGenerators::State {
  Entries entries;
};

ThreadGenerators::ThreadGenerators() : state_(std::make_unique<State>()) {
  const std::lock_guard lock(mutex());
  WEFT_CHECK(!own_entries, "random: this thread has generators of its own already");
  for (const auto& [device, entry] : process_entries()) state_->entries[device].generator = entry.generator;
  own_entries = &state_->entries;
}

ThreadGenerators::~ThreadGenerators() { own_entries = nullptr; }

Generator& generator(Device device) {
  const std::lock_guard lock(mutex());
  return entry(device).generator;
}

void manual_seed(uint64_t seed) {
  const std::lock_guard lock(mutex());
  if (!own_entries) default_seed = seed;
  for (const DeviceKind kind : {DeviceKind::cpu, DeviceKind::simt}) entry({kind, 0}).generator = {seed, 0};
  for (int index = 0; index < 16; ++index) entry({DeviceKind::cuda, index}).generator = {seed, 0};
}

Tensor random_state(Device device) {
  const std::lock_guard lock(mutex());
  Entry& e = entry(device);
  if (e.captured_state.defined()) return e.captured_state;
  if (!e.state.defined() || e.state_seed != e.generator.seed) {
    e.state = state_of(e.generator.seed, device);
    e.state_seed = e.generator.seed;
  }
  return e.state;
}

RandomCapture::RandomCapture(Device device) : device_(device) {
  const std::lock_guard lock(mutex());
  Entry& e = entry(device);
  WEFT_CHECK(!e.captured_state.defined(), "random: another graph is captured on ", device);
  before_ = e.generator;
  state_seed_ = before_.seed;
  state_ = e.captured_state = state_of(state_seed_, device);
  e.generator.offset = 0;
}

void RandomCapture::finish() {
  const std::lock_guard lock(mutex());
  Entry& e = entry(device_);
  if (!e.captured_state.is_same(state_)) return;
  blocks_ = e.generator.offset;
  e.generator = before_;
  e.captured_state = {};
}

void RandomCapture::advance() {
  if (blocks_ == 0) return;
  Generator& source = generator(device_);
  if (source.seed != state_seed_) {
    state_.copy_(state_of(source.seed, device_));
    state_seed_ = source.seed;
  }
  const uint64_t base = source.take(blocks_);
  constexpr uint64_t kExact = uint64_t{1} << 53;  // fill takes a double
  WEFT_CHECK(base < kExact, "random: block ", base, " is past the largest that a graph can start from");
  state_.slice(0, 1, 1).fill_(static_cast<double>(base));
}

}  // namespace weft
