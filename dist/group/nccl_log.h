// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace weft::dist {

/// What NCCL logs of its connections. NCCL has no call that tells its transport: while groups connect, its log goes
/// into memory, unless NCCL_DEBUG or NCCL_DEBUG_FILE say where the user wants it.
class NcclLog {
 public:
  static NcclLog& instance();
  /// Before NCCL's first call in this process; reads the environment as that does.
  void begin();
  /// NCCL has begun to write, and processes that this one starts shall not.
  void end();
  /// What is there so far.
  std::string text() const;

 private:
  int file_ = -1;
  bool begun_ = false, set_ = false;
};

}  // namespace weft::dist
