// SPDX-License-Identifier: Apache-2.0
#include "dist/group/nccl_log.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>
#include <utility>

namespace weft::dist {
namespace {

std::mutex mutex;

constexpr const char* kVariables[] = {"NCCL_DEBUG", "NCCL_DEBUG_FILE", "NCCL_DEBUG_SUBSYS"};

}  // namespace

NcclLog& NcclLog::instance() {
  static NcclLog log;
  return log;
}

void NcclLog::begin() {
  const std::lock_guard lock(mutex);
  if (std::exchange(begun_, true)) return;
  for (const char* variable : kVariables)
    if (std::getenv(variable)) return;
  file_ = ::memfd_create("weft-nccl", MFD_CLOEXEC);
  if (file_ < 0) return;
  set_ = true;
  ::setenv("NCCL_DEBUG", "INFO", 1);
  ::setenv("NCCL_DEBUG_SUBSYS", "INIT,GRAPH", 1);
  ::setenv("NCCL_DEBUG_FILE", ("/proc/self/fd/" + std::to_string(file_)).c_str(), 1);
}

void NcclLog::end() {
  const std::lock_guard lock(mutex);
  if (!std::exchange(set_, false)) return;
  for (const char* variable : kVariables) ::unsetenv(variable);
}

std::string NcclLog::text() const {
  const std::lock_guard lock(mutex);
  struct stat status {};
  if (file_ < 0 || ::fstat(file_, &status) != 0) return "";
  std::string text(static_cast<size_t>(status.st_size), '\0');
  const ssize_t got = ::pread(file_, text.data(), text.size(), 0);
  text.resize(got < 0 ? 0 : static_cast<size_t>(got));
  return text;
}

}  // namespace weft::dist
