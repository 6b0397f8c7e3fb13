// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace weft::support {

/// One entry of summary.json.
using SummaryValue = std::variant<bool, int64_t, double, std::string>;
/// In the order in which they are written. Numbers that are not finite become null.
using Summary = std::vector<std::pair<std::string, SummaryValue>>;

/// The folder that holds everything of one run: config.toml, metrics.jsonl, TensorBoard event files, checkpoints,
/// summary.json.
class RunFolder {
 public:
  /// Creates the folder (and those above it), or opens it. Errors: it cannot be created, or nothing can be written in
  /// it.
  explicit RunFolder(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path file(std::string_view name) const { return path_ / name; }

  std::filesystem::path metrics() const { return file("metrics.jsonl"); }
  static constexpr const char *kLastCheckpoint = "checkpoint_last.h5", *kBestCheckpoint = "checkpoint_best.h5";
  std::filesystem::path last_checkpoint() const { return file(kLastCheckpoint); }
  std::filesystem::path best_checkpoint() const { return file(kBestCheckpoint); }
  bool has_last_checkpoint() const;

  /// Both replace the old file atomically.
  void write_config(std::string_view toml) const;
  void write_summary(const Summary& summary) const;

 private:
  std::filesystem::path path_;
};

}  // namespace weft::support
