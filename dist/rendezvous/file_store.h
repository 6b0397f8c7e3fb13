// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <mutex>
#include <string>

#include "dist/rendezvous/store.h"

namespace weft::dist {

/// A store in a shared folder, one file per key: for jobs whose ranks share a file system and know no address. Waits by
/// polling. Use one folder per job; it is not removed.
class FileStore : public Store {
 public:
  /// Errors: the folder does not exist or cannot be written.
  explicit FileStore(std::filesystem::path folder);

  void set(const std::string& key, const std::string& value) override;
  std::optional<std::string> find(const std::string& key, Milliseconds timeout) override;
  bool has(const std::string& key) override;
  int64_t add(const std::string& key, int64_t amount) override;
  void remove(const std::string& key) override;
  void end_waits(const std::string& why) override;
  /// The content of the file `cookie` there, which only this user can read.
  std::string secret() const override;

 protected:
  std::string why_ended() const override;

 private:
  std::filesystem::path file_of(const std::string& key) const;

  std::filesystem::path folder_;
  mutable std::mutex mutex_;
  std::string why_ended_;
};

}  // namespace weft::dist
