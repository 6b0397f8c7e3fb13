// SPDX-License-Identifier: Apache-2.0
#include "emulator/machine/shared_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <string>

#include "emulator/machine/fault.h"

namespace emulator {

namespace {

std::string name_of(uint64_t number) { return cat("weft-emulate-", number); }

}  // namespace

SharedFile create_shared_file(size_t bytes) {
  static std::atomic<uint32_t> created{0};
  SharedFile shared;
  shared.process = getpid();
  shared.number = static_cast<uint64_t>(shared.process) << 32 | ++created;
  shared.bytes = bytes;
  shared.file = memfd_create(name_of(shared.number).c_str(), MFD_CLOEXEC);
  if (shared.file >= 0 && ftruncate(shared.file, static_cast<off_t>(bytes)) != 0) {
    close(shared.file);
    shared.file = -1;
  }
  return shared;
}

int open_shared_file(const SharedFile& shared) {
  const std::string path = cat("/proc/", shared.process, "/fd/", shared.file);
  char target[128];
  const ssize_t length = readlink(path.c_str(), target, sizeof(target));
  if (length < 0 ||
      std::string(target, static_cast<size_t>(length)).find(name_of(shared.number) + ' ') == std::string::npos)
    return -1;
  return open(path.c_str(), O_RDWR | O_CLOEXEC);
}

void* map_file(int file, size_t bytes, void* at, size_t offset) {
  void* const memory =
      mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | (at ? MAP_FIXED : 0), file, static_cast<off_t>(offset));
  return memory == MAP_FAILED ? nullptr : memory;
}

}  // namespace emulator
