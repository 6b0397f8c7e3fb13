// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <span>

namespace emulator::rand {

enum class Draw { integer, uniform, uniform_double, normal, normal_double };

/// A generator's numbers in the order of cuRAND's documentation. NVIDIA's library gives a number to each of many
/// threads in turn; a thread has a subsequence of its own.
class Sequence {
 public:
  virtual ~Sequence() = default;
  virtual void seed(uint64_t seed) = 0;
  /// To number `offset` of the integers.
  virtual void move(uint64_t offset) = 0;
  /// Normals come with mean 0 and deviation 1.
  virtual void fill(Draw draw, std::span<uint32_t> to) = 0;
  virtual void fill(Draw draw, std::span<float> to) = 0;
  virtual void fill(Draw draw, std::span<double> to) = 0;
  /// Normals are made two at a time by their threads.
  virtual bool wants_pairs() const = 0;
};

/// G. Marsaglia, Xorshift RNGs, J. Stat. Soft. 8(14), 2003. 4,096 threads, 2^67 numbers apart.
std::unique_ptr<Sequence> make_xorwow();
/// J. Salmon et al., Parallel random numbers: as easy as 1, 2, 3, SC 2011. 65,536 threads, four numbers each.
std::unique_ptr<Sequence> make_philox();

}  // namespace emulator::rand
