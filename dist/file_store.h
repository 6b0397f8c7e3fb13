// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <string>

#include "dist/store.h"

namespace weft::dist {

/// A store in a folder that all ranks see, a file for each key: for jobs whose ranks share a file system and have no
/// address to meet at. Waits by looking again. The folder should be one job's own, and outlives it.
class FileStore : public Store {
 public:
  /// Errors: the folder is not there, or cannot be written.
  explicit FileStore(std::filesystem::path folder);

  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key, Milliseconds timeout) override;
  bool has(const std::string& key) override;
  int64_t add(const std::string& key, int64_t amount) override;
  void remove(const std::string& key) override;

 private:
  std::filesystem::path file_of(const std::string& key) const;

  std::filesystem::path folder_;
};

}  // namespace weft::dist
