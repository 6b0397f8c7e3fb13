// SPDX-License-Identifier: Apache-2.0
#include "train/profile_window.h"

#include <charconv>
#include <iostream>

#include "core/profile/chrome_trace.h"
#include "core/profile/op_table.h"
#include "io/atomic_file.h"
#include "train/exit.h"

namespace weft::train {
namespace {

/// Reads `A:B`; false for any other text.
bool read_window(const std::string& text, int64_t& begin, int64_t& end) {
  const char *first = text.data(), *const last = first + text.size();
  const auto [colon, problem] = std::from_chars(first, last, begin);
  if (problem != std::errc() || colon == last || *colon != ':') return false;
  const auto [stop, other] = std::from_chars(colon + 1, last, end);
  return other == std::errc() && stop == last && begin >= 0 && begin < end;
}

}  // namespace

ProfileWindow::ProfileWindow(const std::string& file, const std::string& steps) : trace_(file) {
  if (!read_window(steps, begin_, end_))
    throw train::UsageError(str("--profile-steps: expected A:B with 0 <= A < B, such as 5:8, got '", steps, "'"));
  if (trace_.empty()) return;
  if (trace_.extension() == ".txt")
    throw train::UsageError(str("--profile: expected FILE.json, got '", file, "': FILE.txt is where the table goes"));
  const AtomicFile probe(trace_, "profile");  // a wrong path is an error now, not after the steps
}

void ProfileWindow::before_step() {
  if (!trace_.empty() && step_ == begin_) profiler_ = std::make_unique<profile::Profiler>();
}

std::string ProfileWindow::after_step() { return ++step_ == end_ && profiler_ ? write() : ""; }

std::string ProfileWindow::finish() {
  const std::string line = profiler_ ? write() : "";
  if (!table_.empty()) std::cout << table_ << std::flush;
  if (trace_.empty() || !table_.empty()) return line;
  return str("nothing is profiled: --profile-steps begins at ", begin_, ", this process made ", step_, " steps");
}

std::string ProfileWindow::write() {
  const profile::Recording recording = profiler_->stop();
  profiler_ = nullptr;
  table_ = str("steps ", begin_, " to ", step_ - 1, '\n', profile::op_table(recording));
  std::filesystem::path table_file = trace_;
  table_file.replace_extension(".txt");
  write_atomically(table_file, table_, "profile");
  write_atomically(trace_, profile::chrome_trace(recording), "profile");
  return str("profiled steps ", begin_, " to ", step_ - 1, ": wrote ", trace_.string(), " and ", table_file.string());
}

}  // namespace weft::train
