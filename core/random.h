// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <memory>

#include "core/tensor.h"

namespace weft {

/// The source of random numbers of one device: seed and the count of Philox blocks drawn. A function of both, so
/// saving two numbers saves the state. Each draw of n elements advances the counter by its own number of blocks.
struct RandomGenerator {
  uint64_t seed = 0;
  uint64_t offset = 0;

  /// Takes `blocks` counters; returns the first.
  uint64_t take(uint64_t blocks) {
    const uint64_t first = offset;
    offset += blocks;
    return first;
  }
};

/// The generator of a device (shared by all threads but those with ThreadGenerators; draw from one thread at a time).
RandomGenerator& generator(Device device);

/// While it lives, this thread has generators of its own, which begin where the thread's stand now: for threads that
/// each play a process (dist::run_ranks), and for samples. They nest; the last one's end gives the ones before back.
class ThreadGenerators {
 public:
  ThreadGenerators();
  ~ThreadGenerators();
  ThreadGenerators(const ThreadGenerators&) = delete;
  ThreadGenerators& operator=(const ThreadGenerators&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Seeds every device's generator and sets its counter to 0.
void manual_seed(uint64_t seed);

/// From here on dropout (of attention, too) draws for this rank: with equal seeds, ranks drop other elements. DDP, FSDP
/// and DistributedOptimizer call it with their rank. Numbers that are drawn by name (normal, uniform, bernoulli,
/// permutation, initial weights) stays equal on all ranks. Rank 0, the default, drops as a single process would.
/// manual_seed() keeps the rank. A thread with ThreadGenerators has its own.
void set_dropout_rank(int rank);

/// A rank's dropout mixes this into the seed by exclusive or; 0 for rank 0.
constexpr uint64_t seed_of_rank(int rank) { return static_cast<uint64_t>(rank) * 0x9E3779B97F4A7C15ull; }

/// The i64[2] device tensor {seed, base} that random kernels read; base is 0 outside captured graphs.
Tensor random_state(Device device);
/// As above, for dropout: {seed of this rank, base}.
Tensor dropout_state(Device device);

/// The random numbers of one captured graph (core/graph.h). From its construction to finish() the device's generator
/// counts from 0 and kernels read a state of the graph's own; before each replay, advance() writes the generator's
/// position into that state and takes as many blocks as the graph draws. So a replay draws what an eager run would.
class RandomCapture {
 public:
  explicit RandomCapture(Device device);
  ~RandomCapture() { finish(); }
  RandomCapture(const RandomCapture&) = delete;
  RandomCapture& operator=(const RandomCapture&) = delete;
  /// Puts the generator back where it was. A second call does nothing.
  void finish();
  void advance();

 private:
  Device device_;
  Tensor state_;
  uint64_t state_seed_ = 0, blocks_ = 0;
  RandomGenerator before_;
};

}  // namespace weft
