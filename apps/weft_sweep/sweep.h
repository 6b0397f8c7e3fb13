// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
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

  /// The points are chosen in sequence (next_point) until there are `trials`; `points` has the points so far.
  struct Bayes {
    std::vector<Parameter> parameters;
    size_t trials = 0;
    uint64_t seed = 0;
  };
  std::optional<Bayes> bayes = std::nullopt;
  /// Runs that fall behind are stopped (early_stop.h), first after `min_iter` values of the metric.
  struct Halving {
    int64_t min_iter = 1, eta = 3;
    int64_t max_iter = 0;  ///< no decision from this value on; 0: no such limit
  };
  std::optional<Halving> halving = std::nullopt;

  /// How many points it has, or will have.
  size_t size() const { return bayes ? std::max(bayes->trials, points.size()) : points.size(); }
  std::filesystem::path folder_of(const Point& point) const { return folder / name_of(point); }
  /// The command of one point: placeholders filled in; values without a placeholder are appended as flags
  /// (`--NAME=VALUE`, or `-NAME VALUE` for a name with a dash). The program's flags for its output folder and its
  /// metrics follow. Errors: a program whose flag for its folder is not known.
  std::vector<std::string> command_of(const Point& point) const;

  void save() const;
  /// Errors: missing, or not such a file.
  static Sweep load(const std::filesystem::path& folder);
  static bool exists(const std::filesystem::path& folder);
};

/// How a point's run ended.
struct PointResult {
  /// open: not run yet; stopped: with a checkpoint, to be resumed; pruned: stopped early, as one of the worse.
  enum class State { open, done, failed, stopped, pruned };
  State state = State::open;
  int exit_code = 0;
  double seconds = 0;
  /// Whether there is nothing left to run.
  bool over() const { return state == State::done || state == State::pruned; }
};

/// Both use point.json in the point's folder.
void save_result(const std::filesystem::path& folder, const Point& point, const PointResult& result);
PointResult load_result(const std::filesystem::path& folder);

/// The next point of a Bayesian search, by Optuna's tree-structured Parzen estimator (Bergstra et al., "Algorithms for
/// Hyper-Parameter Optimization", NeurIPS 2011): it models where the better of the points so far lie and where the
/// others do; the first ten are drawn at random. A function of the seed and of the points with their values. Points
/// that are running count as bad ones, so that several at a time differ. None if it finds no new point. Errors: no
/// python3, no Optuna of version 3 or newer.
std::optional<Point> next_point(const Sweep& sweep);

struct Options;
/// A batch script that runs the sweep as a job array: task i runs point i by `weft-sweep --out … --point i`. It
/// forwards SIGTERM and asks Slurm to requeue a task whose program ended with a checkpoint (exit code 75).
/// Errors: --sbatch holds a word that is no flag; --out or the working folder has control characters in its name.
std::string slurm_script(const Sweep& sweep, const Options& options);

}  // namespace weft::weft_sweep
