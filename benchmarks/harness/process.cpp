// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/harness/process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <fstream>
#include <stdexcept>

extern char** environ;

namespace bench {
namespace {

constexpr const char* kSelf = "/proc/self/exe";

std::string read_all(int file) {
  std::string text;
  std::array<char, 4096> buffer;
  ssize_t got = 0;
  while ((got = read(file, buffer.data(), buffer.size())) > 0) text.append(buffer.data(), static_cast<size_t>(got));
  return text;
}

}  // namespace

Outcome run_again(const std::vector<std::string>& arguments) {
  std::vector<char*> argv{const_cast<char*>("bench")};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);

  std::array<int, 2> ends;
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error(std::string("bench: pipe: ") + std::strerror(errno));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  pid_t child = 0;
  const auto start = std::chrono::steady_clock::now();
  const int problem = posix_spawn(&child, kSelf, &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  Outcome outcome;
  int status = 0;
  if (problem == 0) {
    outcome.output = read_all(ends[0]);
    waitpid(child, &status, 0);
  }
  close(ends[0]);
  if (problem != 0) throw std::runtime_error(std::string("bench: cannot start a process: ") + std::strerror(problem));
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw std::runtime_error("its process " + (WIFEXITED(status)
                                                   ? "ended with status " + std::to_string(WEXITSTATUS(status))
                                                   : "was ended by signal " + std::to_string(WTERMSIG(status))));
  return outcome;
}

double peak_memory_mib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("VmHWM:", 0) == 0) return std::stod(line.substr(6)) / 1024;  // `VmHWM:   123 kB`
  throw std::runtime_error("bench: /proc/self/status has no VmHWM");
}

}  // namespace bench
