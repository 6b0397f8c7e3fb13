// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/types.h>

#include "dist/socket.h"

namespace weft::weft_run {

/// A process beside the launcher that ends what is left of the ranks' process groups when the launcher is gone, in
/// whatever way: a rank may be a shell script, whose own children no signal of the kernel's would reach.
class Keeper {
 public:
  /// Before there are other threads.
  Keeper();
  ~Keeper();
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  /// A process group that must not outlive the launcher.
  void watch(pid_t group);
  /// It is gone.
  void forget(pid_t group);

 private:
  void tell(int value);

  dist::Descriptor pipe_;
  pid_t process_;
};

}  // namespace weft::weft_run
