// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "kernels/error.h"

namespace weft::tests {

/// An empty folder of this test's own, removed with its content at the end. `Path` is what its files' names come as.
template <class Path>
class TemporaryFolderOf {
 public:
  explicit TemporaryFolderOf(const std::filesystem::path& place = std::filesystem::temp_directory_path()) {
    std::string name = (place / "weft_test_XXXXXX").string();
    WEFT_CHECK(mkdtemp(name.data()) != nullptr, "test: cannot make the folder ", name);
    path_ = name;
  }
  ~TemporaryFolderOf() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolderOf(const TemporaryFolderOf&) = delete;
  TemporaryFolderOf& operator=(const TemporaryFolderOf&) = delete;

  const std::filesystem::path& path() const { return path_; }
  Path operator/(const std::string& name) const { return Path(path_ / name); }
  /// How many entries it has.
  size_t files() const {
    const std::filesystem::directory_iterator all(path_);
    return static_cast<size_t>(std::distance(begin(all), end(all)));
  }

 private:
  std::filesystem::path path_;
};

/// The folder of tests that put names into command lines.
using TemporaryFolder = TemporaryFolderOf<std::string>;

inline std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace weft::tests
