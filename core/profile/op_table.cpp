// SPDX-License-Identifier: Apache-2.0
#include "core/profile/op_table.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "kernels/error.h"

namespace weft::profile {
namespace {

template <class... Values>
std::string formatted(const char* format, Values... values) {
  char line[256];
  std::snprintf(line, sizeof line, format, values...);
  return line;
}

double share(int64_t time, int64_t of) {
  return of > 0 ? 100.0 * static_cast<double>(time) / static_cast<double>(of) : 0;
}
double milliseconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-6; }

/// `12.3`; a dash where there is nothing to say.
std::string number(double value) { return value > 0 ? formatted("%.*f", value < 100 ? 1 : 0, value) : "-"; }

std::string line_of(const OpRow& row, int64_t duration) {
  const double ns = static_cast<double>(std::max<int64_t>(row.time, 1));
  return formatted("%-28s %-32s %6lld %10.3f %6.1f%% %9s %9s %8s %9s\n", row.op.c_str(), row.kernel.c_str(),
                   static_cast<long long>(row.calls), milliseconds(row.time), share(row.time, duration),
                   number(static_cast<double>(row.bytes) * 1e-6).c_str(), number(row.flop * 1e-9).c_str(),
                   number(static_cast<double>(row.bytes) / ns).c_str(), number(row.flop / ns).c_str());
}

std::string part_lines(const Recording& recording) {
  std::map<std::string, std::pair<int64_t, int64_t>> parts;  // track: name -> calls, time
  for (const Span& span : recording.spans) {
    if (span.category != Category::part) continue;
    auto& [calls, time] = parts[recording.tracks[static_cast<size_t>(span.track)].name + ": " + span.name];
    ++calls;
    time += span.end - span.start;
  }
  std::string text;
  for (const auto& [name, part] : parts)
    text += formatted("%-61s %6lld %10.3f %6.1f%%\n", name.c_str(), static_cast<long long>(part.first),
                      milliseconds(part.second), share(part.second, recording.duration));
  return text;
}

}  // namespace

std::vector<OpRow> op_rows(const Recording& recording) {
  std::map<std::pair<std::string, std::string>, OpRow> by_name;
  for (const Span& span : recording.spans) {
    if (span.category != Category::kernel) continue;
    const std::string op = str(span.op, span.backward ? " backward" : "");
    OpRow& row = by_name[{op, span.kernel()}];
    row.op = op;
    row.kernel = span.kernel();
    ++row.calls;
    row.time += span.end - span.start;
    row.bytes += span.bytes;
    row.flop += span.flop;
  }
  std::vector<OpRow> rows;
  for (const auto& [name, row] : by_name) rows.push_back(row);
  std::stable_sort(rows.begin(), rows.end(), [](const OpRow& a, const OpRow& b) { return a.time > b.time; });
  return rows;
}

std::string op_table(const Recording& recording) {
  std::string text = formatted("%-28s %-32s %6s %10s %7s %9s %9s %8s %9s\n", "op", "kernel", "calls", "ms", "share",
                               "MB", "GFLOP", "GB/s", "GFLOP/s");
  OpRow total;
  total.op = "all kernels";
  for (const OpRow& row : op_rows(recording)) {
    text += line_of(row, recording.duration);
    total.calls += row.calls;
    total.time += row.time;
    total.bytes += row.bytes;
    total.flop += row.flop;
  }
  text += line_of(total, recording.duration);
  text += formatted("%-61s %6s %10.3f %6.1f%%\n", "wall clock", "", milliseconds(recording.duration), 100.0);
  const std::string parts = part_lines(recording);
  if (!parts.empty()) text += formatted("\n%-61s %6s %10s %7s\n", "part", "calls", "ms", "share") + parts;
  return text;
}

}  // namespace weft::profile
