// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/types.h>

#include "dist/rendezvous/socket.h"

namespace weft::weft_run {

/// A process that kills the ranks' remaining process groups after the launcher has ended in any way: a rank may be a
/// shell script, and the kernel sends no signal to a script's children.
class Keeper {
 public:
  /// Call it before other threads exist: it forks.
  Keeper();
  ~Keeper();
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  /// Adds a process group that must not outlive the launcher.
  void watch(pid_t group);
  /// The group has ended.
  void forget(pid_t group);

 private:
  void tell(int value);

  dist::Descriptor pipe_;
  pid_t process_;
};

}  // namespace weft::weft_run
