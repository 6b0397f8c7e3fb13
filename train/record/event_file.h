// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "train/record/appended_file.h"

namespace weft::train {

/// A record of a TensorBoard event file: u64 length, its masked CRC-32C, the bytes, their masked CRC-32C
/// (tensorflow/core/lib/io/record_writer.h).
std::string event_record(std::string_view bytes);

enum class RecordState { whole, half, damaged };
/// Takes the record at the front of `file` and sets `bytes` to its content. A half record stays in `file`: the rest may
/// come yet.
RecordState take_event_record(std::string_view& file, std::string_view& bytes);

/// The part of a TensorBoard event record that a reader of curves needs.
struct Event {
  double wall_time = 0;  ///< seconds since 1970
  int64_t step = 0;
  std::vector<std::pair<std::string, double>> scalars;
  bool starts_session = false;         ///< points of earlier files from `step` on no longer count
  std::optional<bool> ends_session{};  ///< the run ended: well?
};

/// Reads an event file as it grows: TensorBoard's own, PyTorch's and TensorFlow's scalars.
class EventFile {
 public:
  explicit EventFile(std::filesystem::path path) : file_(std::move(path)) {}

  /// Whether a file of this name is one.
  static bool is_one(const std::filesystem::path& path);

  /// Hands over the events that are new; returns whether there were any. Nothing after a damaged record is read: where
  /// the next one begins is unknown.
  bool refresh(const std::function<void(const Event&)>& take);
  bool damaged() const { return damaged_; }
  /// Whether the last record is only partly there, so far.
  bool half() const { return !damaged_ && !file_.unread.empty(); }
  const std::filesystem::path& path() const { return file_.path(); }

 private:
  AppendedFile file_;
  bool damaged_ = false;
};

}  // namespace weft::train
