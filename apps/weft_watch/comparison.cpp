// SPDX-License-Identifier: Apache-2.0
#include "apps/weft_watch/comparison.h"

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <unordered_set>

#include "core/text.h"
#include "train/exit.h"

namespace weft::weft_watch {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostUnasked = 30;  // charts in the terminal

/// A RUN of the command line.
struct Named {
  std::string label;  ///< label in NAME=PATH
  fs::path path;
};

Named parse_run(const std::string& word) {
  std::error_code ignored;
  const size_t sign = word.find('=');
  if (sign == std::string::npos || fs::exists(word, ignored)) return {"", word};
  return {word.substr(0, sign), word.substr(sign + 1)};
}

fs::path folder_of(const fs::path& path) {
  const fs::path tidy = path.lexically_normal();
  return tidy.filename().empty() || tidy.filename() == "metrics.jsonl" || tidy.filename() == "metrics.csv" ||
                 tidy.filename() == "trainer_state.json"
             ? tidy.parent_path()
             : tidy;
}

bool holds_any(const std::string& name, std::initializer_list<const char*> parts) {
  const std::string text = lower_case(name);
  return std::any_of(parts.begin(), parts.end(),
                     [&](const char* part) { return text.find(part) != std::string::npos; });
}

/// The names that a word of --metrics selects.
std::vector<std::string> matches(const std::string& word, const std::vector<std::string>& names) {
  if (word == "all") return names;
  if (const auto one = support::find_curve_name(word, names)) return {*one};
  std::vector<std::string> out;
  for (const std::string& name : names) {
    const bool fits = word == "accuracy"     ? holds_any(name, {"acc"})
                      : word == "throughput" ? holds_any(name, {"per_sec", "per sec", "throughput", "time_per_epoch"})
                                             : lower_case(name).find(lower_case(word)) != std::string::npos;
    if (fits) out.push_back(name);
  }
  return out;
}

double start_of(const support::RunReader& run) {
  double start = support::CurvePoint::kUnknown;
  for (const support::Curve& curve : run.curves())
    if (!curve.points.empty() && !(curve.points[0].time >= start)) start = curve.points[0].time;
  return start;
}

}  // namespace

Comparison::Comparison(const Options& options) : options_(options) {
  for (const std::string& word : options_.runs) {
    std::error_code ignored;
    const fs::path path = parse_run(word).path;
    WEFT_CHECK(fs::exists(path, ignored), "expected a run's folder, got nothing at ", printable(path.string()));
    WEFT_CHECK(options_.follow || !support::find_runs(path).empty(),
               "expected metrics.jsonl, a TensorBoard event file, metrics.csv or trainer_state.json, found none in ",
               printable(path.string()), " and the folders below it. A .csv of another name can be given itself");
  }
  find();
}

bool Comparison::refresh() {
  const size_t before = runs_.size();
  if (options_.follow) find();
  bool any = runs_.size() != before;
  for (const Run& run : runs_) any |= run.reader->refresh();
  return any;
}

void Comparison::find() {
  std::vector<Run> now;
  for (const std::string& word : options_.runs) {
    const Named named = parse_run(word);
    for (const fs::path& path : support::find_runs(named.path)) {
      const auto is_old = [&](const Run& run) { return run.path == path && run.label == named.label; };
      const auto old = std::find_if(runs_.begin(), runs_.end(), is_old);
      now.push_back({.label = named.label,
                     .path = path,
                     .name = "",
                     .reader = old != runs_.end() ? old->reader : std::make_shared<support::RunReader>(path)});
    }
  }
  runs_ = std::move(now);
  name_runs();
}

/// A run's name is its label, or the part of its path that distinguishes it.
void Comparison::name_runs() {
  std::map<std::string, std::vector<Run*>> groups;  // runs by label
  for (Run& run : runs_) groups[run.label].push_back(&run);
  for (auto& [label, group] : groups) {
    const fs::path first = folder_of(group[0]->path);
    auto common = std::distance(first.begin(), first.end());
    for (const Run* run : group) {
      const fs::path path = folder_of(run->path);
      const auto end = std::mismatch(first.begin(), first.end(), path.begin(), path.end()).first;
      common = std::min(common, std::distance(first.begin(), end));
    }
    for (Run* run : group) {
      const fs::path path = folder_of(run->path);
      fs::path rest;
      for (auto at = std::next(path.begin(), std::min(common, std::distance(path.begin(), path.end())));
           at != path.end(); ++at)
        rest /= *at;
      if (group.size() == 1) rest = label.empty() ? path : fs::path();
      if (rest.empty() && label.empty()) rest = ".";  // it holds the others
      run->name = printable(rest.empty() ? label : (fs::path(label) / rest).string());
    }
  }
}

std::vector<std::string> Comparison::names() const {
  std::vector<std::string> out;
  std::unordered_set<std::string_view> seen;
  for (const Run& run : runs_)
    for (const support::Curve& curve : run.reader->curves())
      if (seen.insert(curve.name).second) out.push_back(curve.name);
  return out;
}

std::vector<std::string> Comparison::chosen() const {
  const std::vector<std::string> all = names();
  std::vector<std::string> out, words;
  std::istringstream in(options_.metrics == "all" ? Options().metrics + ",all" : options_.metrics);
  for (std::string word; std::getline(in, word, ',');) words.push_back(word);
  std::unordered_set<std::string> seen;
  const bool unasked = options_.metrics == Options().metrics, preset = unasked || options_.metrics == "all";
  for (const std::string& word : words) {
    const std::vector<std::string> found = matches(word, all);
    if (found.empty() && !all.empty() && !preset && !options_.follow)
      throw train::UsageError(printable("--metrics: no curve is called '" + word + "'. There are: " + joined(all, 20)));
    for (const std::string& name : found)
      if (seen.insert(name).second) out.push_back(name);
  }
  if (out.empty() && preset) out = all;
  if (unasked && options_.html.empty()) out.resize(std::min(out.size(), kMostUnasked));
  return out;
}

std::vector<Chart> Comparison::charts() const {
  std::vector<Chart> out;
  for (const std::string& name : chosen()) {
    Chart chart{name, {}};
    for (size_t i = 0; i < runs_.size(); ++i) {
      const support::Curve* curve = runs_[i].reader->find(name);
      if (curve == nullptr) continue;
      Trace trace{.run = i, .raw = points_of(*curve, options_.x, start_of(*runs_[i].reader)), .smooth = {}};
      if (options_.smooth > 0) trace.smooth = smoothed(trace.raw, options_.smooth);
      chart.traces.push_back(std::move(trace));
    }
    out.push_back(std::move(chart));
  }
  return out;
}

std::vector<std::string> Comparison::notes() const {
  std::vector<std::string> out;
  for (const Run& run : runs_) {
    for (const std::string& note : run.reader->notes()) out.push_back(printable(note));
    if (run.reader->curves().empty()) out.push_back(run.name + ": no numbers yet");
  }
  if (options_.metrics == Options().metrics && options_.html.empty() && chosen().size() == kMostUnasked)
    out.push_back(str(kMostUnasked, " of ", names().size(), " curves are shown; --list names all, --metrics chooses"));
  return out;
}

bool Comparison::all_ended() const {
  return !runs_.empty() &&
         std::all_of(runs_.begin(), runs_.end(), [](const Run& run) { return run.reader->ended().has_value(); });
}

}  // namespace weft::weft_watch
