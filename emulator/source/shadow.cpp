// SPDX-License-Identifier: Apache-2.0
#include "emulator/source/shadow.h"

#include <sys/mman.h>

#include "emulator/machine/fault.h"

namespace emulator::source {

void* reserve_zeroed(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    throw Fault(FaultCode::launch_failure,
                cat("simt: cannot reserve ", bytes >> 20,
                    " MiB of addresses for shadow memory. Is ulimit -v set, or vm.overcommit_memory 2?"));
  return memory;
}

Shadow::Shadow(size_t bytes)
    : words_(static_cast<Cell*>(reserve_zeroed((bytes + 3) / 4 * sizeof(Cell)))),
      bytes_(static_cast<Cell*>(reserve_zeroed(bytes * sizeof(Cell)))),
      size_(bytes) {}

Shadow::~Shadow() {
  munmap(words_, (size_ + 3) / 4 * sizeof(Cell));
  munmap(bytes_, size_ * sizeof(Cell));
}

void Shadow::clear() {
  madvise(words_, (size_ + 3) / 4 * sizeof(Cell), MADV_DONTNEED);
  madvise(bytes_, size_ * sizeof(Cell), MADV_DONTNEED);
}

}  // namespace emulator::source
