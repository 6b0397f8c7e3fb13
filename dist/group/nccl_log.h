// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace weft::dist {

/// The log of NCCL about its connections. NCCL has no call that tells its transport. While groups connect, its log goes
/// into memory, unless the user has set NCCL_DEBUG or NCCL_DEBUG_FILE.
class NcclLog {
 public:
  static NcclLog& instance();
  /// Before NCCL's first call in this process; reads the environment as that does.
  void begin();
  /// NCCL has begun to write, and processes that this one starts shall not.
  void end();
  /// The log so far.
  std::string text() const;

 private:
  int file_ = -1;
  bool begun_ = false, set_ = false;
};

}  // namespace weft::dist
