// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

namespace weft::tests {

/// What a run of the program left.
struct Outcome {
  int exit_code = -1;
  std::string output;  ///< stdout and stderr
};

/// Runs a shell command line.
inline Outcome shell(const std::string& command) {
  Outcome outcome;
  std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> buffer;
  size_t got;
  while ((got = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0) outcome.output.append(buffer.data(), got);
  const int status = pclose(pipe);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

/// While one lives, programs that this process starts see no GPU: of several ranks a machine may have fewer GPUs, and
/// nccl refuses ranks that share one.
class WithoutGpus {
 public:
  WithoutGpus() {
    if (const char* const before = std::getenv(kVariable)) before_ = before;
    ::setenv(kVariable, "", 1);
  }
  ~WithoutGpus() { before_ ? ::setenv(kVariable, before_->c_str(), 1) : ::unsetenv(kVariable); }
  WithoutGpus(const WithoutGpus&) = delete;
  WithoutGpus& operator=(const WithoutGpus&) = delete;

 private:
  static constexpr const char* kVariable = "CUDA_VISIBLE_DEVICES";
  std::optional<std::string> before_;
};

}  // namespace weft::tests
