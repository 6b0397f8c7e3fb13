// SPDX-License-Identifier: Apache-2.0
#include "train/exit.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <new>

#include "core/text.h"

namespace weft::train {
namespace {

int report(const std::string& program, const std::string& text, int code) {
  std::fflush(stdout);
  std::fprintf(stderr, "%s: error: %s\n", program.c_str(), printable_lines(text).c_str());  // it may name files
  return code;
}

/// A program that is started without stdin, stdout or stderr (`2>&-`) would get their numbers for its own files: its
/// output would land in a checkpoint.
void open_standard_files() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
    if (::fcntl(fd, F_GETFD) < 0) static_cast<void>(::open("/dev/null", O_RDWR));  // the lowest free number
}

/// OpenMP's library describes threads on the stack, which overflows from some ten thousand on.
void check_threads() {
  constexpr long kMost = 1024;
  const char* const text = std::getenv("OMP_NUM_THREADS");
  if (text != nullptr && std::strtol(text, nullptr, 10) > kMost)
    throw UsageError(str("OMP_NUM_THREADS: expected at most ", kMost, " threads, got ", text));
}

/// Lines were lost on their way to standard output, and its reader has not left early, as `| head` does.
bool is_output_lost() {
  std::cout.flush();
  if (std::fflush(stdout) == 0 && std::cout && std::ferror(stdout) == 0) return false;
  pollfd output{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  return ::poll(&output, 1, 0) < 0 || (output.revents & POLLERR) == 0;
}

}  // namespace

int guarded_main(const std::string& program, const std::function<int()>& body) {
  open_standard_files();
  std::signal(SIGXFSZ, SIG_IGN);  // too large a file is then an error of the write, with a text
  try {
    check_threads();
    const int code = body();
    return code == kExitOk && is_output_lost()
               ? report(program, "standard output: not all lines could be written. Is the disk full?", kExitError)
               : code;
  } catch (const UsageError& error) {
    return report(program, str(error.what(), " (", program, " --help lists the flags)"), kExitUsage);
  } catch (const std::bad_alloc&) {
    return report(program, "the machine's memory is exhausted. A smaller batch or fewer workers need less", kExitError);
  } catch (const std::exception& error) {
    return report(program, error.what(), kExitError);
  } catch (...) {
    return report(program, "an exception of an unknown type", kExitError);
  }
}

}  // namespace weft::train
