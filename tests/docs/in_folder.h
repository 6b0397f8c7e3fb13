// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>

#include "tests/support/temporary_folder.h"

namespace weft {

/// What a snippet writes lands in a folder of its own, which goes with it.
class InFolderOfItsOwn {
 public:
  InFolderOfItsOwn() : before_(std::filesystem::current_path()) { std::filesystem::current_path(folder_ / ""); }
  ~InFolderOfItsOwn() { std::filesystem::current_path(before_); }

 private:
  tests::TemporaryFolder folder_;
  std::filesystem::path before_;
};

}  // namespace weft
