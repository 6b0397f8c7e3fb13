// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace weft::kernels::vendor {

/// The winners of timings, kept in a text file that any number of processes read and append to. One line each:
///   weft-tune-1 TAB machine TAB problem TAB winner TAB times TAB checksum.
/// If several lines have the same problem, the first counts, so that a line once written decides for all later runs.
/// Lines that are torn, altered or foreign are ignored, with one warning on stderr; so is a file that cannot be read or
/// written: tuning then lasts as long as the process. Thread-safe.
class TuneCache {
 public:
  /// An empty path: no file.
  explicit TuneCache(std::string path) : path_(std::move(path)) {}

  /// $WEFT_TUNE_CACHE (empty: no file), else $XDG_CACHE_HOME/weft/tune.tsv, else $HOME/.cache/weft/tune.tsv.
  static std::string default_path();

  const std::string& path() const { return path_; }
  /// Looks at what other processes have appended meanwhile, too.
  std::optional<std::string> find(const std::string& machine, const std::string& problem);
  /// `times`: for people who read the file. Folders that lack are made.
  void add(const std::string& machine, const std::string& problem, const std::string& winner, const std::string& times);

 private:
  void read_on();
  void take(const std::string& line);
  void warn(const std::string& what);

  const std::string path_;
  std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, std::string> winners_;
  int64_t read_ = 0;  ///< bytes of the file that were looked at
  bool bad_line_ = false, warned_ = false;
};

}  // namespace weft::kernels::vendor
