// SPDX-License-Identifier: Apache-2.0
#include "emulator/source/stacks.h"

#include <sys/mman.h>

#include <algorithm>

#include "emulator/machine/fault.h"
#include "emulator/source/pages.h"

namespace emulator::source {

Stacks::Stacks(int count) : guard_(std::max(page_bytes(), kProbedBytes)), stride_(kBytes + guard_), count_(count) {
  void* memory = mmap(nullptr, static_cast<size_t>(count) * stride_, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    throw Fault(FaultCode::launch_failure,
                cat("simt: no address space for ", count, " fiber stacks. Is ulimit -v set?"));
  base_ = static_cast<char*>(memory);
  free_.reserve(static_cast<size_t>(count));
}

Stacks::~Stacks() { munmap(base_, static_cast<size_t>(count_) * stride_); }

int Stacks::take() {
  if (!free_.empty()) {
    const int stack = free_.back();
    free_.pop_back();
    return stack;
  }
  char* bottom = base_ + static_cast<size_t>(made_) * stride_ + guard_;
  if (made_ >= count_ || mprotect(bottom, kBytes, PROT_READ | PROT_WRITE) != 0)
    throw Fault(FaultCode::launch_failure, cat("simt: no memory for fiber stack ", made_, " of ", count_));
  return made_++;
}

void Stacks::give_back_all() {
  free_.clear();
  for (int stack = made_ - 1; stack >= 0; --stack) free_.push_back(stack);
}

}  // namespace emulator::source
