// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "apps/support/run_reader.h"
#include "apps/support/trace.h"
#include "apps/weft_watch/options.h"

namespace weft::weft_watch {

using support::Chart;
using support::Point;
using support::Trace;

struct Run {
  std::string label;           ///< label in NAME=RUN
  std::filesystem::path path;  ///< its folder or file
  std::string name;            ///< in charts and tables
  std::shared_ptr<support::RunReader> reader;
};

/// The runs of the command line, and their common metrics.
class Comparison {
 public:
  /// Errors: nothing at a path; no run in a folder (unless following: one may begin there).
  explicit Comparison(const Options& options);

  /// Reads new data, also of new runs; returns whether there is any.
  bool refresh();

  const std::vector<Run>& runs() const { return runs_; }
  /// The names of all curves, in the order in which runs have them.
  std::vector<std::string> names() const;
  /// The requested charts. Errors: a word of --metrics that matches no curve, unless following.
  std::vector<Chart> charts() const;
  std::vector<std::string> notes() const;
  bool all_ended() const;

 private:
  void find();
  void name_runs();
  std::vector<std::string> chosen() const;

  const Options& options_;
  std::vector<Run> runs_;
};

}  // namespace weft::weft_watch
