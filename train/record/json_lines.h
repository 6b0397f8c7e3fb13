// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

namespace weft::train {

/// Seconds since 1970.
double wall_time();

/// A metrics.jsonl under way: a JSON object a line, each appended with one write. So a killed run leaves whole lines
/// and at most half a line.
class JsonLines {
 public:
  /// Opens for appending; a half-written last line goes, and so do objects whose "step" is after `resumed_step` (-1: a
  /// new run), which will be written again. Errors: the file cannot be opened.
  explicit JsonLines(std::filesystem::path path, int64_t resumed_step = -1);
  ~JsonLines();
  JsonLines(const JsonLines&) = delete;
  JsonLines& operator=(const JsonLines&) = delete;

  /// Appends the object and a newline. Errors: the disk is full.
  void append(std::string object);

 private:
  std::filesystem::path path_;
  int fd_ = -1;
};

}  // namespace weft::train
