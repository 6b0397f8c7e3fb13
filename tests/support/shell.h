// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace weft::tests {

/// The output of a run of the program.
struct Outcome {
  int exit_code = -1;
  std::string output;  ///< stdout and stderr
};

/// The device of a program that shall use this test's GPU: `cuda`, or `emulated:h100` where it is weft-emulate's.
inline std::string gpu_device() {
  const char* const gpu = std::getenv("WEFT_EMULATE_GPU");
  return gpu ? std::string("emulated:") + gpu : "cuda";
}

/// LD_LIBRARY_PATH as it was before weft-emulate started this test: weft-emulate puts its own folder in front.
inline std::string library_path_outside_emulator() {
  const char* const all = std::getenv("LD_LIBRARY_PATH");
  const std::string paths = all ? all : "";
  const size_t first = paths.find(':');
  return first == paths.npos ? "" : paths.substr(first + 1);
}

/// Runs a shell command line. Its programs see the GPUs of the machine alone, also where weft-emulate started this
/// test: with `auto` they would train on the emulated one for minutes. Programs for the emulated GPU have --device
/// gpu_device().
inline Outcome shell(const std::string& command) {
  Outcome outcome;
  std::string line = command + " 2>&1";
  if (std::getenv("WEFT_EMULATE_GPU") != nullptr)
    line = "unset WEFT_EMULATE_GPU; export LD_LIBRARY_PATH='" + library_path_outside_emulator() + "'; " + line;
  std::FILE* pipe = popen(line.c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> buffer;
  size_t got;
  while ((got = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0) outcome.output.append(buffer.data(), got);
  const int status = pclose(pipe);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

/// Lines of the output that `pattern` matches whole.
inline std::vector<std::string> lines(const std::string& output, const std::string& pattern) {
  std::vector<std::string> found;
  std::istringstream in(output);
  for (std::string line; std::getline(in, line);)
    if (std::regex_match(line, std::regex(pattern))) found.push_back(line);
  return found;
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
