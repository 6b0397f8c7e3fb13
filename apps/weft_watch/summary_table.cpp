// SPDX-License-Identifier: Apache-2.0
#include "apps/weft_watch/summary_table.h"

#include <algorithm>
#include <map>
#include <set>

#include "apps/weft_watch/terminal_chart.h"
#include "core/text.h"

namespace weft::weft_watch {
namespace {

/// Settings that differ in every run without meaning.
bool is_place(const std::string& key) {
  return key == "out" || key == "run_num" || key == "root_dir" || key == "resume";
}

std::string state_of(const support::RunReader& run) {
  if (run.ended()) return *run.ended() ? "finished" : "stopped";
  double step = -1;
  for (const support::Curve& curve : run.curves())
    if (!curve.points.empty()) step = std::max(step, curve.points.back().step);
  return step < 0 ? "no numbers" : "step " + number_text(step);
}

SummaryTable::Number number_of(const support::Curve* curve) {
  if (curve == nullptr || curve->last() == nullptr) return {};
  const support::CurvePoint* best = curve->best(support::less_is_better(curve->name));
  return {number_text(curve->last()->value), number_text(best->value), number_text(best->step)};
}

}  // namespace

SummaryTable::SummaryTable(const std::vector<Run>& runs, const std::vector<Chart>& charts) {
  std::vector<std::map<std::string, std::string>> configs;
  std::vector<std::string> keys;
  std::set<std::string> known;
  for (const Run& run : runs) {
    configs.emplace_back();
    for (const auto& [key, value] : support::read_run_config(run.reader->folder())) {
      configs.back()[key] = value;
      if (known.insert(key).second) keys.push_back(key);
    }
  }
  for (const std::string& key : keys) {
    std::set<std::string> values;
    for (const auto& config : configs) values.insert(config.contains(key) ? config.at(key) : "");
    if (values.size() > 1 && !is_place(key)) settings.push_back(printable(key));
  }
  for (const Chart& chart : charts) metrics.push_back(chart.name);
  for (size_t i = 0; i < runs.size(); ++i) {
    Row row{.run = runs[i].name, .settings = {}, .numbers = {}, .state = state_of(*runs[i].reader)};
    for (const std::string& key : settings)
      row.settings.push_back(configs[i].contains(key) ? printable(configs[i].at(key)) : "");
    for (const std::string& name : metrics) row.numbers.push_back(number_of(runs[i].reader->find(name)));
    rows.push_back(std::move(row));
  }
}

std::vector<std::string> text_of(const SummaryTable& table, const Style& style) {
  constexpr int kWidestName = 40, kGap = 2;
  int name_width = 3;
  for (const auto& row : table.rows) name_width = std::max(name_width, columns_of(row.run));
  name_width = std::min({name_width, kWidestName, std::max(style.width / 2, 3)});
  const int head_width = name_width + 3;

  struct Column {
    std::string head;
    std::vector<std::string> cells;
    int width;
  };
  std::vector<Column> columns;
  const auto add = [&](const std::string& head, auto&& cell_of) {
    Column column{head, {}, columns_of(head)};
    for (const auto& row : table.rows) {
      column.cells.push_back(cell_of(row));
      column.width = std::max(column.width, columns_of(column.cells.back()));
    }
    column.width = std::min(column.width, std::max(style.width - head_width - kGap, 4));
    columns.push_back(std::move(column));
  };
  add("state", [](const auto& row) { return row.state; });
  for (size_t i = 0; i < table.metrics.size(); ++i)
    add(printable(table.metrics[i]), [i](const auto& row) {
      const SummaryTable::Number& n = row.numbers[i];
      return n.last.empty() ? std::string("-") : n.last + " (" + n.best + " at " + n.best_at + ")";
    });

  // As many columns per block as fit the width.
  std::vector<std::string> out;
  for (size_t begin = 0; begin < columns.size();) {
    size_t end = begin;
    int used = head_width;
    while (end < columns.size() && (end == begin || used + kGap + columns[end].width <= style.width))
      used += kGap + columns[end++].width;
    std::string head = fit("run", head_width);
    for (size_t i = begin; i < end; ++i) head += "  " + fit(columns[i].head, columns[i].width);
    out.push_back(head);
    for (size_t r = 0; r < table.rows.size(); ++r) {
      const std::string sign = marker(r, style) + (style.braille ? " " : "  ");
      std::string line = sign + fit(table.rows[r].run, name_width);
      for (size_t i = begin; i < end; ++i) line += "  " + fit(columns[i].cells[r], columns[i].width);
      out.push_back(line);
    }
    begin = end;
  }
  return out;
}

}  // namespace weft::weft_watch
