// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace weft::dist {

/// What the watchdog looks after.
class Watched {
 public:
  virtual ~Watched() = default;
  /// About twenty times a second, on the watchdog's thread. Must not throw.
  virtual void look() = 0;
  /// SIGUSR2 came: print what is known.
  virtual void print() = 0;
};

/// One thread per process looks after all groups, and after SIGUSR2, which it takes over as long as the program has
/// not. The thread lives while something is watched.
void watch(Watched& watched);
/// Returns when `watched` is not being looked at; never again afterwards.
void unwatch(Watched& watched);

}  // namespace weft::dist
