// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "apps/support/axis.h"
#include "apps/support/html_chart.h"
#include "apps/weft_sweep/ranking.h"
#include "core/text.h"
#include "kernels/error.h"
#include "train/progress.h"

namespace weft::weft_sweep {
namespace {

using support::Chart;
using support::html_text;
using State = PointResult::State;

constexpr size_t kMostCurves = 100;

/// Entry i of the ranking is run i of the page: the best in a colour of its own, what was stopped early paler.
std::string colours(const Ranking& ranking) {
  std::string out = ".run0 { color: #d9600a; }\n";
  for (size_t i = 1; i < ranking.entries.size(); ++i)
    out += fmt::format(".run{} {{ color: #3d8bd9; opacity: {}; }}\n", i,
                       ranking.entries[i].result.state == State::done ? 0.9 : 0.45);
  return out;
}

Chart curves(const Sweep& sweep, const Ranking& ranking) {
  const size_t drawn = std::min(ranking.entries.size(), kMostCurves);
  Chart chart{.name = sweep.metric, .traces = {}};
  if (drawn < ranking.entries.size()) chart.name += str(", the best ", drawn, " of ", ranking.entries.size());
  for (size_t i = drawn; i-- > 0;)  // the best is drawn last, on top
    chart.traces.push_back({i, support::points_of({.name = "", .points = ranking.entries[i].curve}, "step", 0), {}});
  return chart;
}

/// The value of each point in the order in which they were started, and the best so far.
Chart best_so_far(const Sweep& sweep, const Ranking& ranking) {
  Chart chart{.name = "best " + sweep.metric + " so far", .traces = {}};
  std::map<size_t, size_t> entry_of;
  for (size_t i = 0; i < ranking.entries.size(); ++i) entry_of[ranking.entries[i].point] = i;
  std::vector<support::Point> best;
  for (const auto& [point, i] : entry_of) {
    const auto value = Ranking::value(sweep, ranking.entries[i]);
    if (!value) continue;
    const double x = static_cast<double>(point) + 1;
    chart.traces.push_back({i, {{x, *value}}, {}});
    if (ranking.entries[i].result.state != State::done) continue;
    const bool wins = best.empty() || (sweep.smaller_wins ? *value < best.back().y : *value > best.back().y);
    best.push_back({x, wins ? *value : best.back().y});
  }
  if (!best.empty()) chart.traces.push_back({0, best, {}});
  return chart;
}

/// The metric over a parameter; nothing if all points have the same value of it. Values that are not all numbers stand
/// at 0, 1, 2, …, and the chart's name says which is which.
std::string figure_of(const std::string& parameter, const Sweep& sweep, const Ranking& ranking,
                      const std::vector<std::string>& runs) {
  const auto text_of = [&](const Ranking::Entry& entry) {
    for (const auto& [name, value] : sweep.points[entry.point])
      if (name == parameter) return value;
    return std::string();
  };
  std::map<std::string, double> place;
  bool numbers = true;
  for (const Ranking::Entry& entry : ranking.entries) {
    const std::string text = text_of(entry);
    char* end = nullptr;
    place[text] = std::strtod(text.c_str(), &end);
    numbers = numbers && !text.empty() && *end == '\0';
  }
  if (place.size() < 2) return "";
  Chart chart{.name = sweep.metric + " over " + parameter, .traces = {}};
  double low = 0, high = 0, count = 0;
  for (auto& [text, value] : place) {
    if (!numbers) chart.name += fmt::format("{} {:g} = {}", count == 0 ? ":" : ",", count, text), value = count;
    low = count == 0 ? value : std::min(low, value), high = count == 0 ? value : std::max(high, value);
    ++count;
  }
  for (size_t i = ranking.entries.size(); i-- > 0;)
    if (const auto value = Ranking::value(sweep, ranking.entries[i]))
      chart.traces.push_back({i, {{place[text_of(ranking.entries[i])], *value}}, {}});
  return support::html_figure(chart, runs, parameter, low > 0 && high > 20 * low);
}

std::string table(const Sweep& sweep, const Ranking& ranking, const std::vector<std::string>& parameters) {
  std::string out = "<div class=scroll><table>\n<tr><th>rank<th>state";
  for (const std::string& name : parameters) out += "<th>" + html_text(name);
  out += "<th>last " + html_text(sweep.metric) + "<th>best<th>at step<th>values<th>time<th>\n";
  const auto number = [](const std::optional<double>& value) {
    return value ? support::number_text(*value) : std::string("\u2013");
  };
  for (size_t i = 0; i < ranking.entries.size(); ++i) {
    const Ranking::Entry& entry = ranking.entries[i];
    const Point& point = sweep.points[entry.point];
    const std::string rank = Ranking::value(sweep, entry) ? str(i + 1) : "\u2013";
    out += fmt::format("<tr><td><span class=run{}>\u25CF</span> {}<td>{}", i, rank, Ranking::state(entry));
    for (const std::string& name : parameters) {
      const auto found = std::find_if(point.begin(), point.end(), [&](const auto& pair) { return pair.first == name; });
      out += "<td>" + (found == point.end() ? "" : html_text(found->second));
    }
    out += fmt::format("<td>{}<td>{}<td>{}<td>{}<td>{}<td><a href=\"{}/log.txt\">log</a>\n", number(entry.last),
                       number(entry.best), entry.best ? fmt::format("{:g}", entry.best_step) : "", entry.curve.size(),
                       train::clock_text(entry.result.seconds), html_text(name_of(point)));
    if (!entry.why.empty())
      out += fmt::format("<tr><td colspan={} class=note>{}\n", parameters.size() + 8, html_text(entry.why));
  }
  return out + "</table></div>\n";
}

}  // namespace

std::string results_page(const Sweep& sweep, const Ranking& ranking) {
  std::vector<std::string> parameters;
  for (const Point& point : sweep.points)
    for (const auto& [name, value] : point)
      if (std::find(parameters.begin(), parameters.end(), name) == parameters.end()) parameters.push_back(name);
  std::vector<std::string> runs(ranking.entries.size());
  for (size_t i = 0; i < runs.size(); ++i) runs[i] = name_of(sweep.points[ranking.entries[i].point]);

  std::string words;
  for (const State state : {State::done, State::pruned, State::failed, State::stopped, State::open})
    if (const size_t count = ranking.count(state); count > 0) {
      Ranking::Entry example;
      example.result.state = state;
      words += str(words.empty() ? "" : ", ", count, ' ', Ranking::state(example));
    }
  const std::string best = ranking.entries.empty() || !Ranking::value(sweep, ranking.entries[0])
                               ? ""
                               : ". Best: " + runs[0] + ", " + sweep.metric + ' ' +
                                     support::number_text(*Ranking::value(sweep, ranking.entries[0]));
  std::string out = support::html_head(sweep.folder.string() + ": " + sweep.metric, colours(ranking), 0) + "<p>" +
                    html_text(words + best) +
                    "</p>\n<input type=checkbox id=log><label for=log>log scale</label>\n<main>\n";
  out += support::html_figure(curves(sweep, ranking), runs, "step");
  out += support::html_figure(best_so_far(sweep, ranking), runs, "point");
  for (const std::string& name : parameters) out += figure_of(name, sweep, ranking, runs);
  return out + "</main>\n" + table(sweep, ranking, parameters) + "</html>\n";
}

}  // namespace weft::weft_sweep
