// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "core/profile/profiler.h"

namespace weft::train {

/// Profiles the steps A to B - 1 of a run and writes FILE.json and FILE.txt when they are done.
///   while (…) {
///     window.before_step();
///     … one step, from waiting for its batch on …
///     window.after_step();
///   }
///   window.finish();
class ProfileWindow {
 public:
  /// `file`: of the trace; empty: nothing is profiled. `steps`: `A:B`. Errors: not two numbers with A < B; a folder
  /// that is not there.
  ProfileWindow(const std::string& file, const std::string& steps);

  /// Starts the profiler before step A.
  void before_step();
  /// Returns a line to print when the files have just been written, else an empty text.
  std::string after_step();
  /// At the end of the run, whenever that is: writes what was seen so far, and the table to stdout. Returns a line to
  /// print, or an empty text.
  std::string finish();

 private:
  std::string write();

  std::filesystem::path trace_;
  int64_t begin_ = 0, end_ = 0, step_ = 0;
  std::unique_ptr<profile::Profiler> profiler_;
  std::string table_;  ///< once written
};

}  // namespace weft::train
