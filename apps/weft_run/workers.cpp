// SPDX-License-Identifier: Apache-2.0
#include "apps/weft_run/workers.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <set>

#include "core/text.h"
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

namespace {

/// Runs in the child between fork and exec. Returns only after a failure, with errno.
void become(char* const* arguments, char* const* variables, const char* log, bool keeps_input, pid_t launcher) {
  if (::setpgid(0, 0) != 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != launcher) ::_exit(137);  // the launcher died before the line above
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (!keeps_input) {
    const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null < 0 || ::dup2(null, STDIN_FILENO) < 0) return;
  }
  if (log[0] != '\0') {
    const int file = ::open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (file < 0 || ::dup2(file, STDOUT_FILENO) < 0 || ::dup2(file, STDERR_FILENO) < 0) return;
  }
  ::execvpe(arguments[0], arguments, variables);
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (const std::string& text : texts) list.push_back(const_cast<char*>(text.c_str()));
  list.push_back(nullptr);
  return list;
}

}  // namespace

int Ending::code() const { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

std::string Ending::text() const {
  if (WIFEXITED(status)) return str("rank ", rank, " ended with exit code ", WEXITSTATUS(status));
  return str("rank ", rank, " was ended by signal ", WTERMSIG(status), " (", ::strsignal(WTERMSIG(status)), ")");
}

Workers::Workers(const std::vector<std::string>& command, const std::vector<Worker>& workers, Keeper& keeper)
    : keeper_(keeper) {
  try {
    for (const Worker& worker : workers) start(command, worker);
  } catch (...) {
    stop(0);
    throw;
  }
}

Workers::~Workers() { stop(0); }

void Workers::start(const std::vector<std::string>& command, const Worker& worker) {
  std::vector<std::string> assignments;
  for (const auto& [name, value] : worker.variables) assignments.push_back(name + "=" + value);
  const std::vector<char*> arguments = pointers(command), variables = pointers(assignments);
  // A terminal would stop a background rank that reads, and ranks cannot share an input.
  const bool keeps_input = running_.empty() && !::isatty(STDIN_FILENO);
  int failure[2];
  WEFT_CHECK(::pipe2(failure, O_CLOEXEC) == 0, "cannot make a pipe: ", dist::error_words(errno));
  const pid_t launcher = ::getpid(), process = ::fork();
  if (process == 0) {
    become(arguments.data(), variables.data(), worker.log.c_str(), keeps_input, launcher);
    const int number = errno;
    if (::write(failure[1], &number, sizeof number) < 0) ::_exit(126);
    ::_exit(127);
  }
  const dist::Descriptor reader(failure[0]);
  ::close(failure[1]);
  WEFT_CHECK(process > 0, "cannot start a process: ", dist::error_words(errno));
  ::setpgid(process, process);  // also here, since either process may run first
  keeper_.watch(process);
  running_[process] = worker.rank;
  int number = 0;
  ssize_t got;
  while ((got = ::read(reader.fd(), &number, sizeof number)) < 0 && errno == EINTR) continue;
  WEFT_CHECK(got == 0, "cannot start '", printable(command[0]), "'",
             worker.log.empty() ? "" : " with its log " + printable(worker.log), ": ", dist::error_words(number),
             command[0].ends_with(".py") ? ". A script of Python is started by python3 " + printable(command[0]) : "");
}

pid_t Workers::find_ended(bool by_signal) const {
  for (const auto& [process, rank] : running_) {
    siginfo_t info{};
    if (::waitid(P_PID, static_cast<id_t>(process), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        info.si_pid == process && (!by_signal || info.si_code != CLD_EXITED))
      return process;
  }
  return 0;
}

Ending Workers::take(pid_t process) {
  int status = 0;
  ::waitpid(process, &status, 0);
  const Ending ending{running_.at(process), status};
  ::kill(-process, SIGKILL);  // the rank's remaining processes
  keeper_.forget(process);
  running_.erase(process);
  return ending;
}

std::optional<Ending> Workers::take_ended() {
  const pid_t process = find_ended(/*by_signal=*/false);
  if (process == 0) return std::nullopt;
  return take(process);
}

std::optional<Ending> Workers::take_killed(std::chrono::milliseconds time) {
  const dist::TimePoint deadline = dist::Clock::now() + time;
  do {
    if (const pid_t process = find_ended(/*by_signal=*/true)) return take(process);
    ::usleep(5000);
  } while (!running_.empty() && dist::Clock::now() < deadline);
  return std::nullopt;
}

std::optional<int> Workers::stopped_rank() const {
  for (const auto& [process, rank] : running_) {
    siginfo_t info{};
    if (::waitid(P_PID, static_cast<id_t>(process), &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
        info.si_pid == process && info.si_code == CLD_STOPPED)
      return rank;
  }
  return std::nullopt;
}

void Workers::signal(int number) const {
  for (const auto& [process, rank] : running_) ::kill(-process, number);
}

void Workers::stop(int grace) {
  const dist::TimePoint deadline = dist::Clock::now() + std::chrono::seconds(grace);
  if (grace > 0) signal(SIGTERM);
  signal(SIGCONT);  // a stopped process does not handle SIGTERM
  bool killed = false;
  while (!running_.empty()) {
    if (!killed && dist::Clock::now() >= deadline) {
      signal(SIGKILL);
      killed = true;
    }
    if (!take_ended()) ::usleep(5000);
  }
}

}  // namespace weft::weft_run
