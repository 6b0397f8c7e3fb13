// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <csignal>
#include <ctime>

namespace weft::dist {

/// Libraries that write to sockets without MSG_NOSIGNAL end the process when the other side has closed. While this
/// lives, the thread (and those that it starts) gets the write's error instead; a SIGPIPE of that time is swallowed.
class NoBrokenPipe {
 public:
  NoBrokenPipe() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &previous_);
  }
  ~NoBrokenPipe() {
    constexpr timespec kNow{};
    if (!was_pending_) sigtimedwait(&pipe_, nullptr, &kNow);
    pthread_sigmask(SIG_SETMASK, &previous_, nullptr);
  }
  NoBrokenPipe(const NoBrokenPipe&) = delete;
  NoBrokenPipe& operator=(const NoBrokenPipe&) = delete;

 private:
  sigset_t pipe_, previous_;
  bool was_pending_ = false;
};

}  // namespace weft::dist
