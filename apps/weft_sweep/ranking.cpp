// SPDX-License-Identifier: Apache-2.0
#include "apps/weft_sweep/ranking.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/text.h"
#include "io/atomic_file.h"
#include "io/file_reader.h"
#include "kernels/error.h"
#include "train/progress.h"

namespace weft::weft_sweep {
namespace {

using State = PointResult::State;
using Json = nlohmann::ordered_json;

/// The last line of a log that is not empty.
std::string last_line(const std::filesystem::path& log) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(log, ignored)) return "";
  const FileReader file(log, "sweep");
  std::string tail(std::min<uint64_t>(file.size(), 4096), '\0'), line, last;
  file.read(file.size() - tail.size(), tail.data(), tail.size());
  std::istringstream in(tail);
  while (std::getline(in, line))
    if (line.find_first_not_of(" \t\r") != std::string::npos) last = line;
  return printable(last, 200);
}

void read_metric(const Sweep& sweep, const std::filesystem::path& folder, Ranking::Entry& entry) {
  const std::string& metric = sweep.metric;
  std::vector<std::string> names;
  for (const std::filesystem::path& path : support::find_runs(folder)) {
    support::RunReader run(path);
    run.refresh();
    const auto name = support::find_curve_name(metric, run.names());
    const support::Curve* curve = name ? run.find(*name) : nullptr;
    for (const std::string& other : run.names()) names.push_back(other);
    if (curve == nullptr || curve->points.empty()) continue;
    entry.last = curve->points.back().value;
    if (const auto* const best = curve->best(sweep.smaller_wins))
      entry.best = best->value, entry.best_step = best->step;
    entry.curve = curve->points;
    if (!Ranking::value(sweep, entry))
      entry.why = printable(str("its ", entry.best ? "last '" : "'", metric, "' is no number"));
    return;
  }
  entry.why = names.empty() ? "it wrote no metrics" : printable("no '" + metric + "' among " + joined(names, 8));
}

std::string number(const std::optional<double>& value) { return value ? fmt::format("{:.6g}", *value) : "-"; }

}  // namespace

Ranking::Ranking(const Sweep& sweep) {
  for (size_t i = 0; i < sweep.points.size(); ++i) {
    Entry entry;
    entry.point = i;
    const std::filesystem::path folder = sweep.folder_of(sweep.points[i]);
    entry.result = load_result(folder);
    if (entry.result.state == State::failed)
      entry.why = str("exit code ", entry.result.exit_code, ": ", last_line(folder / "log.txt"));
    if (entry.result.over() && !sweep.metric.empty()) read_metric(sweep, folder, entry);
    entries.push_back(std::move(entry));
  }
  std::stable_sort(entries.begin(), entries.end(), [&](const Entry& one, const Entry& other) {
    const auto a = value(sweep, one), b = value(sweep, other);
    if (!a || !b) return a.has_value() && !b;
    if (one.result.state != other.result.state) return one.result.state == State::done;  // the other lost at its length
    return sweep.smaller_wins ? *a < *b : *a > *b;
  });
}

const char* Ranking::state(const Entry& entry) {
  static constexpr const char* kNames[] = {"not run", "done", "failed", "stopped", "stopped early"};
  return kNames[static_cast<size_t>(entry.result.state)];
}

size_t Ranking::count(State state) const {
  return static_cast<size_t>(
      std::count_if(entries.begin(), entries.end(), [&](const Entry& e) { return e.result.state == state; }));
}

size_t Ranking::without_value() const {
  return static_cast<size_t>(std::count_if(entries.begin(), entries.end(),
                                           [](const Entry& e) { return e.result.state == State::done && !e.last; }));
}

std::string Ranking::text(const Sweep& sweep) const {
  size_t width = 5;
  for (const Point& point : sweep.points) width = std::max(width, name_of(point).size());
  std::string out;
  if (!sweep.metric.empty())
    out = fmt::format("{:>4}  {:<{}}  {:>12}  {:>12}  {:>8}  {:>8}\n", "rank", "point", width, "last " + sweep.metric,
                      "best", "at step", "time");
  size_t rank = 0;
  for (const Entry& entry : entries) {
    const bool ranked = value(sweep, entry).has_value();
    const std::string name = name_of(sweep.points[entry.point]), time = train::clock_text(entry.result.seconds);
    if (ranked)
      out +=
          fmt::format("{:>4}  {:<{}}  {:>12}  {:>12}  {:>8}  {:>8}{}\n", ++rank, name, width, number(entry.last),
                      number(entry.best), fmt::format("{:g}", entry.best_step), time,
                      entry.result.state == State::pruned ? fmt::format("  stopped after {}", entry.curve.size()) : "");
    else
      out += fmt::format("   -  {:<{}}  {}{}\n", name, width, state(entry),
                         entry.why.empty() ? "" : " (" + entry.why + ")");
  }
  return out;
}

void Ranking::save(const Sweep& sweep) const {
  Json runs = Json::array();
  for (const Entry& entry : entries) {
    const Point& point = sweep.points[entry.point];
    Json values = Json::object();
    for (const auto& [name, value] : point) values[name] = value;
    Json run{{"point", entry.point}, {"values", values}, {"state", state(entry)}};
    run["last"] = entry.last ? Json(*entry.last) : Json();
    run["best"] = entry.best ? Json(*entry.best) : Json();
    run["best_step"] = entry.best ? Json(entry.best_step) : Json();
    run["count"] = entry.curve.size();
    run["seconds"] = entry.result.seconds;
    run["folder"] = sweep.folder_of(point).string();
    if (!entry.why.empty()) run["why"] = entry.why;
    runs.push_back(std::move(run));
  }
  const Json json{{"metric", sweep.metric},
                  {"goal", sweep.smaller_wins ? "min" : "max"},
                  {"by", sweep.by_best ? "best" : "last"},
                  {"runs", runs}};
  write_atomically(sweep.folder / "ranking.json", json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n",
                   "ranking");
}

}  // namespace weft::weft_sweep
