// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace weft::dist {

/// A group under the watchdog's care.
class Watched {
 public:
  virtual ~Watched() = default;
  /// About twenty times a second, on the thread that it was given to. Must not throw.
  virtual void look() = 0;
  /// SIGUSR2 came: print what is known. The thread `deadlines` calls it.
  virtual void print() {}
};

/// Threads of the process that look after all groups. A driver that a hung kernel blocks holds up `devices` alone.
/// `deadlines` also looks after SIGUSR2, which it takes over as long as the program has not. They live while something
/// is watched.
enum class WatchThread : uint8_t { deadlines, devices };

/// From here on SIGUSR2 asks for prints, unless the program handles or ignores the signal. Where nothing is watched, it
/// does nothing.
void take_print_signal();

void watch(Watched& watched, WatchThread thread = WatchThread::deadlines);
/// Returns when `watched` is not being looked at; never again afterwards.
void unwatch(Watched& watched, WatchThread thread = WatchThread::deadlines);

}  // namespace weft::dist
