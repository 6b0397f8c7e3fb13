// SPDX-License-Identifier: Apache-2.0
// Runs a target over files instead of under libFuzzer: every file of every named folder, each in a child process of its
// own. So a crash names its file and hides no other.
#include <sys/resource.h>
#include <sys/wait.h>

#include <iostream>

#include "io/file_reader.h"
#include "tests/fuzz/fuzz.h"

namespace {

namespace fs = std::filesystem;

constexpr unsigned kSeconds = 20;

/// True when the target took the file within its time.
bool survives(const fs::path& file) {
  const std::vector<uint8_t> bytes = weft::read_file(file);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(kSeconds);
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    std::exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (status == 0) return true;
  std::cerr << file.string() << ": "
            << (WIFSIGNALED(status) ? weft::str("killed by signal ", WTERMSIG(status))
                                    : weft::str("exit code ", WEXITSTATUS(status)))
            << '\n';
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  int files = 0, failures = 0;
  for (int i = 1; i < argc; ++i) {
    if (!fs::exists(argv[i])) continue;
    for (const fs::directory_entry& entry : fs::directory_iterator(argv[i]))
      if (entry.is_regular_file()) ++files, failures += survives(entry.path()) ? 0 : 1;
  }
  std::cout << files << " inputs, " << failures << " failures\n";
  return files > 0 && failures == 0 ? 0 : 1;
}
