// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "apps/weft_sweep/sweep_file.h"

namespace weft::weft_sweep {

/// A sweep: what is searched, how, and in which folder (FOLDER/sweep.json).
struct Sweep {
  std::filesystem::path folder;
  std::vector<std::string> command;  ///< the program and its flags; `{run}` is the run's folder, `{NAME}` a value
  std::vector<Point> points;
  std::string metric;  ///< empty: no ranking
  bool smaller_wins = true;
  bool by_best = false;  ///< rank by a run's best value, not by its last

  std::filesystem::path folder_of(const Point& point) const { return folder / name_of(point); }
  /// The command of one point: placeholders filled in; values without one are appended as flags (`--NAME=VALUE`, or
  /// `-NAME VALUE` for a name with a dash), and so are the program's flags for its output folder and its metrics.
  /// Errors: a program whose flag for its folder is not known.
  std::vector<std::string> command_of(const Point& point) const;

  void save() const;
  /// Errors: missing, or not such a file.
  static Sweep load(const std::filesystem::path& folder);
  static bool exists(const std::filesystem::path& folder);
};

/// How a point's run ended.
struct PointResult {
  enum class State { open, done, failed, stopped };  ///< open: not run yet; stopped: with a checkpoint, to be resumed
  State state = State::open;
  int exit_code = 0;
  double seconds = 0;
};

/// Both use point.json in the point's folder.
void save_result(const std::filesystem::path& folder, const Point& point, const PointResult& result);
PointResult load_result(const std::filesystem::path& folder);

}  // namespace weft::weft_sweep
