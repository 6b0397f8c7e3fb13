// SPDX-License-Identifier: Apache-2.0
#include "emulator/machine/findings.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>

#include "emulator/machine/options.h"

namespace emulator {
namespace {

constexpr size_t kMostOfAKind = 20;

struct Findings {
  std::mutex mutex;
  std::map<std::string, std::set<std::string>> keys;  ///< keyed by kind
  size_t faults = 0;
  std::vector<Told> told;
};
Findings& findings() {
  static Findings* const all = new Findings;
  return *all;
}

/// Keeps a finding, and appends it to the file of `weft-emulate --report`. The line is a single write, so that lines of
/// several processes stay whole.
void keep(Told told) {
  if (const std::string& path = options().report; !path.empty()) {
    const std::string line = nlohmann::json{{"kind", told.kind}, {"text", told.text}}.dump(
                                 -1, ' ', false, nlohmann::json::error_handler_t::replace) +
                             "\n";
    const int file = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
    if (file < 0 && errno == ENOENT) return findings().told.push_back(std::move(told));  // the report is written
    if (file < 0 || ::write(file, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
      std::fprintf(stderr, "weft-emulate: cannot write to %s\n", path.c_str());
    if (file >= 0) ::close(file);
  }
  findings().told.push_back(std::move(told));
}

/// Runs after the program's own handlers and destructors, as it is registered before they are.
void end_with_findings() {
  if (before_the_end) before_the_end();
  size_t found;
  {
    const std::lock_guard lock(findings().mutex);
    found = findings().faults;
    for (const auto& [kind, keys] : findings().keys) found += keys.size();
  }
  if (found == 0) return;
  std::fflush(nullptr);
  std::fprintf(stderr, "weft-emulate: %zu finding%s\n", found, found == 1 ? "" : "s");
  _exit(options().exit_code);
}

[[gnu::constructor]] void register_end() { std::atexit(end_with_findings); }

}  // namespace

bool report_finding(std::string kind, std::string text, std::string key) {
  const std::lock_guard lock(findings().mutex);
  std::set<std::string>& keys = findings().keys[kind];
  if (!keys.insert(std::move(key)).second || keys.size() > kMostOfAKind + 1) return false;
  if (keys.size() == kMostOfAKind + 1) {
    std::fprintf(stderr, "weft-emulate: %s: there is more of this kind\n", kind.c_str());
    return false;
  }
  std::fprintf(stderr, "weft-emulate: %s: %s\n", kind.c_str(), text.c_str());
  keep({std::move(kind), std::move(text)});
  return true;
}

void count_fault() {
  const std::lock_guard lock(findings().mutex);
  ++findings().faults;
}

void keep_told(std::string kind, std::string text) {
  const std::lock_guard lock(findings().mutex);
  keep({std::move(kind), std::move(text)});
}
std::vector<Told> all_told() {
  const std::lock_guard lock(findings().mutex);
  return findings().told;
}

}  // namespace emulator
