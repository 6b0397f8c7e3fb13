// SPDX-License-Identifier: Apache-2.0
#include "train/exit.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
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

}  // namespace

int guarded_main(const std::string& program, const std::function<int()>& body) {
  open_standard_files();
  std::signal(SIGXFSZ, SIG_IGN);  // too large a file is then an error of the write, with a text
  try {
    return body();
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
