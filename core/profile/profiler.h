// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/profile/recording.h"

namespace weft::profile {

/// Records ops, kernels, parts of the program and memory from its construction on, on every thread.
///   profile::Profiler profiler;
///   … a few training steps …
///   const profile::Recording seen = profiler.stop();
///   write_atomically("trace.json", profile::chrome_trace(seen), "profile");
/// Kernels of the CPU are timed on the host. On cuda two events around each kernel are resolved at the end;
/// nothing waits in between, but recording them takes about two microseconds of the host's time per kernel.
class Profiler {
 public:
  /// Errors: another Profiler records.
  Profiler();
  /// Stops without a result.
  ~Profiler();
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  /// Waits for the devices whose kernels were timed. Call once.
  Recording stop();

 private:
  bool running_ = true;
};

}  // namespace weft::profile
