// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>

#include "tests/support/temporary_folder.h"

namespace weft {

/// A snippet's files are in a folder of their own, which is removed at the end.
class InFolderOfItsOwn {
 public:
  InFolderOfItsOwn() : before_(std::filesystem::current_path()) { std::filesystem::current_path(folder_ / ""); }
  ~InFolderOfItsOwn() { std::filesystem::current_path(before_); }

 private:
  tests::TemporaryFolder folder_;
  std::filesystem::path before_;
};

}  // namespace weft
