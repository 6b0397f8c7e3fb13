// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "kernels/error.h"

namespace weft {

/// The memory that a load may take: a budget for all files of the load together, so that many files get no more than a
/// single file. A file adds eight times its size (types that are widened, descriptions of tensors); beyond that there
/// are 256 MiB.
class MemoryBudget {
 public:
  void opened(uint64_t file_bytes) {
    files_ += file_bytes;
    left_ += 8 * file_bytes;
  }
  /// False, and nothing is taken, where less is left.
  bool take(uint64_t bytes) {
    if (bytes > left_) return false;
    left_ -= bytes;
    return true;
  }
  /// Errors, through `fail`: less is left. `what` takes the memory: `a pickle's values`.
  template <class Fail>
  void take(uint64_t bytes, const char* what, const Fail& fail) {
    if (!take(bytes))
      fail(str("expected ", what, " that fit about eight times the ", files_, " bytes of all files opened, got more"));
  }

 private:
  uint64_t files_ = 0, left_ = uint64_t{256} << 20;
};

}  // namespace weft
