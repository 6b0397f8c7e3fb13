// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "apps/weft_sweep/space.h"

namespace weft::weft_sweep {

/// What is searched, how, and where: FOLDER/sweep.json.
struct Sweep {
  std::filesystem::path folder;
  std::vector<std::string> command;  ///< the program and its flags; `{run}` is the run's folder, `{NAME}` a value
  std::vector<Point> points;
  std::string metric;  ///< empty: no ranking
  bool smaller_wins = true;
  bool by_best = false;  ///< a run counts by its best value, not by its last

  std::filesystem::path folder_of(const Point& point) const { return folder / name_of(point); }
  /// The command of one point: placeholders filled in; values that have none become flags behind it (`--NAME=VALUE`, or
  /// `-NAME VALUE` for a name with a dash), and so does the run's folder, by the flags that the program has for it and
  /// for the numbers that runs are ranked by.
  /// Errors: a program whose flag for its folder is not known.
  std::vector<std::string> command_of(const Point& point) const;

  void save() const;
  /// Errors: there is none; not such a file.
  static Sweep load(const std::filesystem::path& folder);
  static bool exists(const std::filesystem::path& folder);
};

/// How a point's run ended.
struct PointResult {
  enum class State { open, done, failed, stopped };  ///< open: not run yet; stopped: with a checkpoint, to be run again
  State state = State::open;
  int exit_code = 0;
  double seconds = 0;
};

/// Both in the point's folder, point.json.
void save_result(const std::filesystem::path& folder, const Point& point, const PointResult& result);
PointResult load_result(const std::filesystem::path& folder);

}  // namespace weft::weft_sweep
