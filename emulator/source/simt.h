// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>

#include "emulator/machine/stream_order.h"

namespace emulator::source {

/// 0: threads run in a fixed order (each until it has to wait). Any other seed: blocks, warps and lanes run in a random
/// order that the seed determines when one OS thread runs the grid, and atomics may switch threads. A kernel whose
/// result depends on the seed has a race. Starts as WEFT_SIMT_SEED, or 0.
void set_schedule_seed(uint64_t seed);
uint64_t schedule_seed();

/// At most this many OS threads run the blocks of a grid; the checked build has one. Starts as WEFT_SIMT_THREADS, or
/// the number of processors.
void set_thread_count(int threads);
int thread_count();

/// The compute capability that the emulated device reports, 80 or 90: kernels of Hopper run at 90 only. Starts as
/// WEFT_SIMT_CAPABILITY, or 90. Not to be changed while a kernel runs.
void set_device_capability(int capability);
int device_capability();

/// Another capability while it lives.
class CapabilityScope {
 public:
  explicit CapabilityScope(int capability) : before_(device_capability()) { set_device_capability(capability); }
  ~CapabilityScope() { set_device_capability(before_); }
  CapabilityScope(const CapabilityScope&) = delete;
  CapabilityScope& operator=(const CapabilityScope&) = delete;

 private:
  int before_;
};

/// When streams do their work: by the machine's scheduler, and the calls return at once; errors of kernels come at the
/// next call that waits, and then the device goes on. Without an order each call returns when its work has ended.
/// Starts as WEFT_SIMT_STREAMS (inorder, lazy, random, starve:K), whose random order WEFT_SIMT_SEED chooses. Waits for
/// all that was issued.
void set_stream_order(const std::optional<StreamOptions>& order);

/// The work of this process so far.
struct Usage {
  int64_t fixed_launches, random_launches;  ///< by the order of their threads
  double seconds;                           ///< in kernels, added up over the threads that launched them
};
Usage usage();

/// True in a build with WEFT_SIMT_CHECK=ON, where every access of a kernel is checked for bounds, for memory that was
/// never written, and for data races.
bool access_checks();

}  // namespace emulator::source
