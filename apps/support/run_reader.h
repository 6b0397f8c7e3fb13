// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "train/record/appended_file.h"
#include "train/record/event_file.h"

namespace weft::support {

struct CurvePoint {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  double step = 0;
  double epoch = kUnknown;
  double time = kUnknown;   ///< seconds since 1970
  double value = kUnknown;  ///< not finite: a gap
};

/// How one number of a run went on, in the order of its steps.
struct Curve {
  std::string name;
  std::vector<CurvePoint> points = {};
  double shift = 0;      ///< steps of earlier phases: what add() counts on from
  bool by_line = false;  ///< rows are finer than the epochs that they name, and name no step: lines count
  std::optional<CurvePoint> repeated = {};  ///< the first row of the epoch that the last row names, too

  /// For a row without a step, which is line `line` of its file: sets the point's step.
  void place(CurvePoint& point, double line);

  /// Adds a point. A step that is not after the last one is made again: a run went on from an earlier checkpoint, or
  /// was started again, and the points from there on are dropped. Unless its epoch is a later one: then the program
  /// counts its steps from 0 in each phase, and they are counted on.
  void add(CurvePoint point);
  /// Takes back the points from this step on.
  void drop_from(double step);

  /// The last point that is not a gap.
  const CurvePoint* last() const;
  /// The (first) smallest or largest.
  const CurvePoint* best(bool smallest) const;
};

/// Whether less of it is better, as far as the name tells: losses, errors, times.
bool less_is_better(const std::string& name);

/// The name among `names` that is meant: itself, or the only one of the same words in another order (`val_loss` is
/// `loss/val`).
std::optional<std::string> find_curve_name(const std::string& name, const std::vector<std::string>& names);

/// Reads the curves of a run from its folder, again and again while it goes on: metrics.jsonl as Metrics, ScalarLog and
/// other programs write it, and TensorBoard event files for further names. Steps are `step`, else `global_step`,
/// `iteration` and the like, else epochs, else lines. Lines that are no objects are skipped and noted; texts and
/// objects in a line are no curves; null, and Python's NaN and Infinity, are gaps. Without metrics.jsonl it reads a
/// table (table_of()).
class RunReader {
 public:
  /// `path`: the run's folder, or a file in the folder.
  explicit RunReader(std::filesystem::path path);

  /// Reads what is new; returns whether anything is.
  bool refresh();

  const std::filesystem::path& folder() const { return folder_; }
  /// Lines of metrics.jsonl with `split` give `loss/train`, `loss/val`, and so on, as in the TensorBoard files.
  const std::vector<Curve>& curves() const { return curves_; }
  const Curve* find(const std::string& name) const;
  std::vector<std::string> names() const;
  /// One line for each file that could not be read in full: `metrics.jsonl: skipped 2 of 30 lines (first: line 7)`.
  std::vector<std::string> notes() const;
  /// Whether the run has ended, and well, as its newest event file says; empty: it goes on, or nothing tells.
  std::optional<bool> ended() const { return ended_; }

 private:
  struct Source {
    std::map<std::string, Curve> curves;
    std::vector<std::string> order;
    Curve& at(const std::string& name);
  };
  void find_event_files();
  bool read_lines();
  bool read_last_line();
  void read_line(const std::string& line);
  bool read_table();
  /// Numbers by name: `step`, `epoch`, `time`, and a point for each of the others.
  void add_row(const std::vector<std::pair<std::string, double>>& row, const std::string& split = "");
  bool read_events();
  void merge();

  std::filesystem::path folder_;
  train::AppendedFile lines_;
  std::vector<train::EventFile> event_files_;
  bool one_file_ = false, reads_lines_ = true, read_ahead_ = false;  ///< read_ahead_: a line's end is still to come
  std::filesystem::path table_;                                      ///< as it was read last
  std::filesystem::file_time_type table_written_;
  std::string table_problem_;
  Source from_lines_, from_events_;
  int64_t line_ = 0, skipped_ = 0, first_skipped_ = 0;
  std::vector<Curve> curves_;
  std::unordered_map<std::string, size_t> places_;  ///< indices of the curves, by name
  std::optional<bool> ended_;
};

/// A run's table in its folder: metrics.csv of Lightning and others, or trainer_state.json of Hugging Face's Trainer,
/// of the folder itself or of its newest checkpoint. Empty: there is none.
std::filesystem::path table_of(const std::filesystem::path& folder);

/// The folders of runs at `path` or below, in the order of their names (`run2` before `run10`), also below other runs:
/// TensorBoard's add_scalars makes one of each curve. A file is a run, too.
/// Links to folders are not followed below `path`.
std::vector<std::filesystem::path> find_runs(const std::filesystem::path& path);

/// A run's settings at its start, from config.yaml (`key: {value: …}`) or config.toml; empty without these
/// files.
std::vector<std::pair<std::string, std::string>> read_run_config(const std::filesystem::path& folder);

}  // namespace weft::support
