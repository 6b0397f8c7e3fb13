// SPDX-License-Identifier: Apache-2.0
#include "dist/staging.h"

#include <utility>

#include "kernels/runtime.h"
#include "kernels/transfer.h"

namespace weft::dist {

PinnedMemory::~PinnedMemory() {
  if (memory_) kernels::runtime(kind_).release_pinned(memory_);
}

std::byte* PinnedMemory::at_least(size_t bytes) {
  if (bytes > bytes_ || !memory_) {
    kernels::Runtime& device = kernels::runtime(kind_);
    if (memory_) device.release_pinned(std::exchange(memory_, nullptr));
    bytes_ = 0;
    memory_ = device.allocate_pinned(bytes > 0 ? bytes : 1);
    WEFT_CHECK(memory_, "process group: cannot get ", bytes, " bytes of pinned memory");
    bytes_ = bytes;
  }
  return static_cast<std::byte*>(memory_);
}

void Staging::copy(const char* name, void* to, const void* from, size_t bytes) const {
  if (bytes > 0) kernels::transfer({device, stream.handle()}, name, to, from, bytes);
}

}  // namespace weft::dist
