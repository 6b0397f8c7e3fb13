// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/mman.h>

#include <cstdlib>
#include <memory>

#include "kernels/error.h"

namespace weft::kernels::cpu {

/// Memory that grows to the largest request and stays: one per thread and purpose. In huge pages where it fills some.
class Scratch {
 public:
  void* at_least(size_t bytes) {
    if (bytes > bytes_) {
      memory_.reset();  // before the larger one is asked for
      const size_t alignment = bytes < kHugePage ? 64 : kHugePage;
      bytes_ = (bytes + alignment - 1) / alignment * alignment;
      memory_.reset(std::aligned_alloc(alignment, bytes_));
      WEFT_CHECK(memory_, "cpu: no memory for a workspace of ", bytes_, " bytes");
      if (alignment == kHugePage) madvise(memory_.get(), bytes_, MADV_HUGEPAGE);
    }
    return memory_.get();
  }

 private:
  static constexpr size_t kHugePage = size_t{2} << 20;
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::unique_ptr<void, Free> memory_;
  size_t bytes_ = 0;
};

}  // namespace weft::kernels::cpu
