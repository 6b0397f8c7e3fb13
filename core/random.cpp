// SPDX-License-Identifier: Apache-2.0
#include "core/random.h"

#include <map>
#include <mutex>

namespace weft {
namespace {

/// The seeds of a device's draws.
struct Seeds {
  uint64_t common = 0, dropout = 0;
  bool operator==(const Seeds&) const = default;
};

struct Entry {
  RandomGenerator generator;
  Tensor state;           // on the device, see state_of()
  Seeds state_seeds;      // the seeds in `state`
  Tensor captured_state;  // instead, while a graph is captured
};

/// {seed, base, seed of dropout, base}.
Tensor state_of(Seeds seeds, Device device) {
  return Tensor::from<int64_t>({static_cast<int64_t>(seeds.common), 0, static_cast<int64_t>(seeds.dropout), 0}, device);
}

/// Two elements of it, from `first` on.
Tensor pair_of(const Tensor& state, int64_t first) {
  return state.alias(kernels::View::dense(state.data<int64_t>() + first, DType::i64, {2}));
}

uint64_t default_seed = 0;
uint64_t process_key = 0;  // set by set_dropout_rank()
std::mutex& mutex() {
  static std::mutex* const instance = new std::mutex;
  return *instance;
}

using Entries = std::map<std::pair<int, int>, Entry>;
thread_local Entries* own_entries = nullptr;
thread_local uint64_t own_key = 0, own_default_seed = 0;

Entries& process_entries() {
  static auto* const entries = new Entries;
  return *entries;
}

Entry& entry(Device device) {
  Entries& entries = own_entries ? *own_entries : process_entries();
  auto [found, made] = entries.try_emplace({static_cast<int>(device.kind), device.index});
  if (made) found->second.generator.seed = own_entries ? own_default_seed : default_seed;
  return found->second;
}

Seeds seeds_of(const RandomGenerator& generator) {
  return {generator.seed, generator.seed ^ (own_entries ? own_key : process_key)};
}

Tensor whole_state(Device device) {
  const std::lock_guard lock(mutex());
  Entry& e = entry(device);
  if (e.captured_state.defined()) return e.captured_state;
  const Seeds seeds = seeds_of(e.generator);
  if (!e.state.defined() || e.state_seeds != seeds) {
    e.state = state_of(seeds, device);
    e.state_seeds = seeds;
  }
  return e.state;
}

}  // namespace

struct ThreadGenerators::State {
  Entries entries;
  Entries* outer;  // the thread's before, with their key and seed
  uint64_t outer_key, outer_default_seed;
};

ThreadGenerators::ThreadGenerators() : state_(new State{{}, own_entries, own_key, own_default_seed}) {
  const std::lock_guard lock(mutex());
  for (const auto& [device, entry] : own_entries ? *own_entries : process_entries())
    state_->entries[device].generator = entry.generator;
  if (!own_entries) own_key = process_key, own_default_seed = default_seed;
  own_entries = &state_->entries;
}

ThreadGenerators::~ThreadGenerators() {
  own_entries = state_->outer;
  own_key = state_->outer_key;
  own_default_seed = state_->outer_default_seed;
}

RandomGenerator& generator(Device device) {
  const std::lock_guard lock(mutex());
  return entry(device).generator;
}

void manual_seed(uint64_t seed) {
  const std::lock_guard lock(mutex());
  (own_entries ? own_default_seed : default_seed) = seed;
  for (auto& [device, entry] : own_entries ? *own_entries : process_entries()) entry.generator = {seed, 0};
}

void set_dropout_rank(int rank) {
  const std::lock_guard lock(mutex());
  (own_entries ? own_key : process_key) = seed_of_rank(rank);
}

Tensor random_state(Device device) { return pair_of(whole_state(device), 0); }
Tensor dropout_state(Device device) { return pair_of(whole_state(device), 2); }

RandomCapture::RandomCapture(Device device) : device_(device) {
  const std::lock_guard lock(mutex());
  Entry& e = entry(device);
  WEFT_CHECK(!e.captured_state.defined(), "random: another graph is captured on ", device);
  before_ = e.generator;
  state_ = e.captured_state = state_of(seeds_of(before_), device);
  state_seed_ = before_.seed;
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
  RandomGenerator& source = generator(device_);
  if (source.seed != state_seed_) {
    state_.copy_(state_of(seeds_of(source), device_));
    state_seed_ = source.seed;
  }
  const uint64_t base = source.take(blocks_);
  constexpr uint64_t kExact = uint64_t{1} << 53;  // fill takes a double
  WEFT_CHECK(base < kExact, "random: block ", base, " is past the largest that a graph can start from");
  state_.slice(0, 1, 2, 2).fill_(static_cast<double>(base));
}

}  // namespace weft
