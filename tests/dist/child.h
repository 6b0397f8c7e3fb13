// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "dist/rendezvous/socket.h"
#include "tests/support/error_text.h"
#include "tests/support/shell.h"

namespace weft::dist {

/// A program that a test has started, with pipes to its stdin and from its stdout and stderr. It does not outlive the
/// object.
class Child {
 public:
  /// `environment`: assignments that are added to this process's own. The program is not emulated where the test is.
  explicit Child(const std::vector<std::string>& command, const std::vector<std::string>& environment = {}) {
    int in[2], out[2];
    if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0) fail("test: no pipe");
    std::vector<char*> arguments, variables;
    const bool emulated = std::getenv("WEFT_EMULATE_GPU") != nullptr;
    const std::string paths = "LD_LIBRARY_PATH=" + tests::library_path_outside_emulator();
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    for (const std::string& assignment : environment) variables.push_back(const_cast<char*>(assignment.c_str()));
    if (emulated) variables.push_back(const_cast<char*>(paths.c_str()));
    for (char** entry = environ; *entry != nullptr; ++entry)  // the first of a name counts
      if (!emulated || !std::string_view(*entry).starts_with("WEFT_EMULATE_GPU=")) variables.push_back(*entry);
    variables.push_back(nullptr);
    process_ = ::fork();
    if (process_ == 0) {
      ::dup2(in[0], STDIN_FILENO);
      ::dup2(out[1], STDOUT_FILENO);
      ::dup2(out[1], STDERR_FILENO);
      ::execvpe(arguments[0], arguments.data(), variables.data());
      ::_exit(127);
    }
    ::close(in[0]);
    ::close(out[1]);
    in_ = Descriptor(in[1]);
    out_ = Descriptor(out[0]);
  }
  ~Child() {
    if (process_ > 0) {
      ::kill(process_, SIGKILL);
      ::waitpid(process_, nullptr, 0);
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t process() const { return process_; }
  const std::string& output() const { return output_; }
  void signal(int number) const { ::kill(process_, number); }
  void close_input() { in_.close(); }

  /// Reads until the output holds `text` `times` times; false: the output ended, or a minute passed before.
  bool prints(const std::string& text, int times = 1) {
    return read_until([&] {
      int found = 0;
      for (size_t at = output_.find(text); at != std::string::npos; at = output_.find(text, at + text.size())) ++found;
      return found >= times;
    });
  }

  /// Reads to the end of the output and waits for the end of the process: its exit code, 128 + the number of the signal
  /// that ended the process, or -1 if killed after `seconds`.
  int exit_code(int seconds = 60) {
    const TimePoint deadline = Clock::now() + std::chrono::seconds(seconds);
    read_until([] { return false; }, deadline);
    int status = 0;
    while (::waitpid(process_, &status, WNOHANG) == 0) {
      if (Clock::now() > deadline) {
        ::kill(process_, SIGKILL);
        ::waitpid(process_, &status, 0);
        process_ = -1;
        return -1;
      }
      ::usleep(2000);
    }
    process_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  template <class Condition>
  bool read_until(Condition&& condition, TimePoint deadline = Clock::now() + std::chrono::seconds(60)) {
    char buffer[4096];
    while (!condition()) {
      if (!wait_readable(out_.fd(), deadline)) return false;
      const ssize_t got = ::read(out_.fd(), buffer, sizeof buffer);
      if (got <= 0) return condition();
      output_.append(buffer, static_cast<size_t>(got));
    }
    return true;
  }

  pid_t process_ = -1;
  Descriptor in_, out_;
  std::string output_;
};

/// Waits until a program listens on this port of this host; false: not within a minute.
inline bool listens(uint16_t port) {
  Descriptor probe;
  for (int tries = 0; tries < 6000; ++tries) {
    if (connect_to(resolve({"127.0.0.1", port}).front(), Clock::now() + std::chrono::seconds(1), probe) == 0) return true;
    ::usleep(10'000);
  }
  return false;
}

}  // namespace weft::dist
