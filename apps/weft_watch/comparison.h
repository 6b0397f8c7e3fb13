// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "apps/support/run_reader.h"
#include "apps/weft_watch/options.h"
#include "apps/weft_watch/trace.h"

namespace weft::weft_watch {

struct Run {
  std::string label;           ///< of NAME=RUN
  std::filesystem::path path;  ///< its folder or file
  std::string name;            ///< as charts and tables show it
  std::shared_ptr<support::RunReader> reader;
};

/// One number of all runs that have it.
struct Chart {
  std::string name;
  std::vector<Trace> traces;
};

/// The runs that the command line names, and what they have in common.
class Comparison {
 public:
  /// Errors: nothing at a path; no run in a folder (unless it is to be followed: one may begin there).
  explicit Comparison(const Options& options);

  /// Reads what is new, also runs that have begun since; returns whether anything is.
  bool refresh();

  const std::vector<Run>& runs() const { return runs_; }
  /// The names of all curves, in the order in which runs have them.
  std::vector<std::string> names() const;
  /// The charts that are asked for. Errors: a word of --metrics that fits no curve, when not following.
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
