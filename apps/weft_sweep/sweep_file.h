// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weft::weft_sweep {

/// The values of one flag.
struct Parameter {
  enum class Kind { values, uniform, log_uniform, whole };  ///< whole: integers with equal probability
  std::string name;
  Kind kind = Kind::values;
  std::vector<std::string> values = {};  ///< strings, as the program gets them
  double low = 0, high = 0;              ///< limits of the other kinds, both included
  double step = 0;                       ///< a drawn number is rounded to a multiple of it; 0: it is not
  std::vector<double> weights = {};      ///< how likely each of `values` is; empty: all the same
};

/// `lr=1e-5,5e-5`, `dropout=0..0.5`, `lr=log:1e-5..1e-1`, `depth=int:2..8`. Errors: UsageError.
Parameter parse_parameter(const std::string& text);
/// Errors: an empty range, a range that a log scale cannot have, the same value twice. `where` begins the message.
void check_parameter(const Parameter& parameter, const std::string& where);

/// A value for each flag, in the order of the parameters.
using Point = std::vector<std::pair<std::string, std::string>>;

/// `lr=1e-5,batch_size=16`: a point's name in lists, and its folder. Characters that are unsafe in a path become
/// `_`, long names are cut, and both get a unique number at the end.
std::string name_of(const Point& point);

/// All combinations; the last parameter changes fastest. A range of whole numbers or of multiples of a step is the list
/// of all. Errors: another range, weights, more than 100,000 points.
std::vector<Point> grid(const std::vector<Parameter>& parameters);

/// `count` different points (fewer if there are no more): point i is a function of the seed and of earlier points, so a
/// longer search begins with the points of a shorter search.
std::vector<Point> random_points(const std::vector<Parameter>& parameters, int64_t count, uint64_t seed);

/// A sweep in the format of wandb:
///   method: random            # or grid, bayes
///   metric: {name: val_loss, goal: minimize}
///   run_cap: 20               # points at most
///   early_terminate: {type: hyperband, min_iter: 3, eta: 3}
///   parameters:
///     lr: {distribution: log_uniform_values, min: 1.0e-5, max: 1.0e-1}
///     batch_size: {values: [16, 32]}
///     epochs: {value: 10}
/// docs/sweeps.md lists the distributions and the keys that are passed over.
struct SweepFile {
  std::string method = "grid", metric, goal;  ///< goal: min, max or empty
  std::vector<Parameter> parameters;
  int64_t run_cap = 0;
  int64_t min_iter = 0, eta = 3;  ///< early_terminate's settings; 0: none
  int64_t max_iter = 0;           ///< no run is stopped from this value on; 0: no such limit
  /// `program` and `command`, with {NAME} for a value; empty: the file has neither.
  std::vector<std::string> command = {};
  std::vector<std::string> notes = {};  ///< lines for the user: what was passed over
};

/// Errors: UsageErrors `FILE:LINE: …`.
SweepFile read_sweep_file(const std::filesystem::path& path);

}  // namespace weft::weft_sweep
