// SPDX-License-Identifier: Apache-2.0
#include "tests/crash/disk_calls.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace weft::crash {
namespace {

std::string watched;
std::function<Fate(const DiskCall&)> decision;

std::string path_of(int fd) {
  char name[64], path[4096];
  std::snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
  const ssize_t length = ::readlink(name, path, sizeof path);
  return length > 0 ? std::string(path, static_cast<size_t>(length)) : "";
}

/// `call()`, unless the decision is otherwise; `partly(n)` writes the first n bytes.
template <class Call, class Partly>
ssize_t decide(DiskCall call, const Call& whole, const Partly& partly) {
  if (!decision || !call.path.starts_with(watched)) return whole();
  const Fate fate = decision(call);
  if (fate.kind == Fate::happens) return whole();
  if (fate.kind == Fate::kills) {
    if (fate.written > 0) partly(std::min(fate.written, call.bytes));
    ::kill(::getpid(), SIGKILL);
    for (;;) ::pause();
  }
  errno = fate.error_number;
  return -1;
}

ssize_t write_at(int fd, const void* bytes, size_t size, off_t offset) {
  const auto some = [&](size_t count) { return ::syscall(SYS_pwrite64, fd, bytes, count, offset); };
  return decide(
      {DiskCall::write, path_of(fd), size}, [&] { return some(size); }, some);
}

int change(const DiskCall& call, const std::function<long()>& whole) {
  return static_cast<int>(decide(call, whole, [](size_t) {}));
}

}  // namespace

void watch_disk(const std::string& folder, std::function<Fate(const DiskCall&)> decide) {
  watched = folder;
  decision = std::move(decide);
}

}  // namespace weft::crash

using weft::crash::DiskCall;

extern "C" {

ssize_t write(int fd, const void* bytes, size_t size) {
  if (!weft::crash::decision) return ::syscall(SYS_write, fd, bytes, size);
  const auto some = [&](size_t count) { return ::syscall(SYS_write, fd, bytes, count); };
  return weft::crash::decide(
      {DiskCall::write, weft::crash::path_of(fd), size}, [&] { return some(size); }, some);
}
ssize_t pwrite(int fd, const void* bytes, size_t size, off_t offset) {
  return weft::crash::write_at(fd, bytes, size, offset);
}
ssize_t pwrite64(int fd, const void* bytes, size_t size, off64_t offset) {
  return weft::crash::write_at(fd, bytes, size, offset);
}
int ftruncate(int fd, off_t size) noexcept {
  return weft::crash::change({DiskCall::truncate, weft::crash::path_of(fd)},
                             [=] { return ::syscall(SYS_ftruncate, fd, size); });
}
int ftruncate64(int fd, off64_t size) noexcept { return ftruncate(fd, size); }
int truncate(const char* path, off_t size) noexcept {
  return weft::crash::change({DiskCall::truncate, path}, [=] { return ::syscall(SYS_truncate, path, size); });
}
int fsync(int fd) {
  return weft::crash::change({DiskCall::sync, weft::crash::path_of(fd)}, [=] { return ::syscall(SYS_fsync, fd); });
}
int rename(const char* from, const char* to) noexcept {
  return weft::crash::change({DiskCall::rename, to},
                             [=] { return ::syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to); });
}

}  // extern "C"
