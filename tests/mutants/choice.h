// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>

// Wrong code may look wrong.
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wparentheses"
#pragma GCC diagnostic ignored "-Wdangling-else"
#pragma GCC diagnostic ignored "-Wempty-body"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wunused-value"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wbool-compare"
#pragma GCC diagnostic ignored "-Wint-in-bool-context"
#pragma GCC diagnostic ignored "-Wmisleading-indentation"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Warray-bounds"
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#pragma GCC diagnostic ignored "-Wnarrowing"
#pragma GCC diagnostic ignored "-Wdiv-by-zero"
#pragma GCC diagnostic ignored "-Wduplicated-branches"
#pragma GCC diagnostic ignored "-Wtype-limits"

#ifdef __CUDACC__
#define WEFT_ON_BOTH __host__ __device__
#else
#define WEFT_ON_BOTH
#endif

namespace weft::mutants {

/// The number of the mutant that this process runs, from WEFT_MUTANT; 0: none. weft-emulate gives a kernel the same
/// number, in a register that GPUs leave to their drivers.
WEFT_ON_BOTH inline int chosen() {
#ifdef __CUDA_ARCH__
  int number;
  asm("mov.b32 %0, %%envreg3;" : "=r"(number));
  return number;
#else
  static const int number = [] {
    const char* const text = std::getenv("WEFT_MUTANT");
    return text ? std::atoi(text) : 0;
  }();
  return number;
#endif
}

/// The tests that have begun in this process (listener.h counts).
inline std::atomic<int> tests_begun{0};

/// Adds a line to the file WEFT_MUTANT_LOG. Processes that a test starts know its name, too. One that may open no file
/// logs nothing: its test then counts as one that reaches less.
inline void log_line(const std::string& word, long long number) {
  const char* const test = std::getenv("WEFT_MUTANT_TEST");
  const std::string line = word + " " + (test ? test : "-") + " " + std::to_string(number) + "\n";
  const int file = ::open(std::getenv("WEFT_MUTANT_LOG"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) return;
  [[maybe_unused]] const ssize_t written = ::write(file, line.data(), line.size());
  ::close(file);
}

/// Logs that the running test reaches the site of this mutant, once per test.
template <int kNumber>
void note_reached() {
  static const bool logs = std::getenv("WEFT_MUTANT_LOG") != nullptr;
  static std::atomic<int> noted{-1};
  if (const int now = tests_begun.load(); logs && noted.exchange(now) != now) log_line("reached", kNumber);
}

/// Whether this process runs the mutant kNumber. A constant expression is never wrong. tools/mutants puts this header
/// in front of a source and `(weft::mutants::is<17>() ? (wrong) : (right))` at the mutant's site.
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <int kNumber>
WEFT_ON_BOTH constexpr bool is() {
  if (__builtin_is_constant_evaluated()) return false;
#ifndef __CUDA_ARCH__
  note_reached<kNumber>();
#endif
  return chosen() == kNumber;
}

}  // namespace weft::mutants
