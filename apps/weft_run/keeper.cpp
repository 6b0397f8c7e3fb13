// SPDX-License-Identifier: Apache-2.0
#include "apps/weft_run/keeper.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <set>

#include "kernels/error.h"

namespace weft::weft_run {
namespace {

/// Reads the groups until the launcher's end of the pipe closes.
[[noreturn]] void keep(int pipe) {
  ::setpgid(0, 0);  // signals to the launcher's group must not reach this process
  ::prctl(PR_SET_NAME, "weft-run-keeper");
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, nullptr);
  std::set<pid_t> groups;
  int value;
  while (true) {
    const ssize_t got = ::read(pipe, &value, sizeof value);  // never partial: a pipe writes four bytes at once
    if (got < 0 && errno == EINTR) continue;
    if (got != sizeof value) break;
    if (value > 0)
      groups.insert(value);
    else
      groups.erase(-value);
  }
  for (const pid_t group : groups) ::kill(-group, SIGKILL);
  ::_exit(0);
}

}  // namespace

Keeper::Keeper() {
  int ends[2];
  WEFT_CHECK(::pipe2(ends, O_CLOEXEC) == 0, "cannot make a pipe: ", dist::error_words(errno));
  process_ = ::fork();
  if (process_ == 0) {
    ::close(ends[1]);
    keep(ends[0]);
  }
  ::close(ends[0]);
  pipe_ = dist::Descriptor(ends[1]);
  WEFT_CHECK(process_ > 0, "cannot start a process: ", dist::error_words(errno));
}

Keeper::~Keeper() {
  pipe_.close();
  ::waitpid(process_, nullptr, 0);
}

void Keeper::watch(pid_t group) { tell(group); }
void Keeper::forget(pid_t group) { tell(-group); }

void Keeper::tell(int value) {
  if (::write(pipe_.fd(), &value, sizeof value) != sizeof value) pipe_.close();  // the keeper was killed
}

}  // namespace weft::weft_run
