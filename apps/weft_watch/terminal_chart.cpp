// SPDX-License-Identifier: Apache-2.0
#include "apps/weft_watch/terminal_chart.h"

#include <algorithm>
#include <cmath>

#include "core/printable.h"

namespace weft::weft_watch {
namespace {

/// The position of a value on a line of `dots` dots.
int dot_of(const Axis& axis, double value, int dots) {
  return static_cast<int>(std::lround(std::clamp(axis.share(value), 0.0, 1.0) * (dots - 1)));
}

void draw_trace(Canvas& canvas, const Trace& trace, const Axis& x, const Axis& y, bool log) {
  bool pen_down = false;
  int last_x = 0, last_y = 0;
  for (const Point& p : trace.shown()) {
    if (p.is_gap() || (log && p.y <= 0)) {
      pen_down = false;
      continue;
    }
    const int dot_x = dot_of(x, p.x, canvas.dots_wide()),
              dot_y = canvas.dots_high() - 1 - dot_of(y, p.y, canvas.dots_high());
    if (pen_down)
      canvas.line(last_x, last_y, dot_x, dot_y, trace.run);
    else
      canvas.dot(dot_x, dot_y, trace.run);
    pen_down = true;
    last_x = dot_x, last_y = dot_y;
  }
}

/// The labels below the x axis, centred below their ticks; labels that would touch the previous one are left out.
std::string x_texts(const Axis& x, int left, int columns, const std::string& name) {
  std::string line(static_cast<size_t>(left + columns), ' ');
  const size_t room = line.size() - std::min(line.size(), name.size() + 1);
  size_t free = 0;
  for (const Axis::Tick& tick : x.ticks()) {
    const size_t half = tick.text.size() / 2, at = static_cast<size_t>(left + dot_of(x, tick.value, columns));
    const size_t begin = at > half ? at - half : 0;
    if (begin < free || begin + tick.text.size() > room) continue;
    line.replace(begin, tick.text.size(), tick.text);
    free = begin + tick.text.size() + 1;
  }
  line.replace(line.size() - std::min(line.size(), name.size()), name.size(), name);
  return line;
}

}  // namespace

int columns_of(const std::string& text) {
  return static_cast<int>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string fit(const std::string& text, int columns) {
  std::string out;
  int seen = 0;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xc0) != 0x80 && ++seen > columns) break;
    out += c;
  }
  return out + std::string(static_cast<size_t>(std::max(columns - seen, 0)), ' ');
}

Extent extent_of(const Chart& chart, bool log) {
  Extent e;
  for (const Trace& trace : chart.traces)
    for (const Point& p : trace.shown()) {
      if (p.is_gap() || (log && p.y <= 0)) continue;
      if (!e.drawable) e = {p.x, p.x, p.y, p.y, true};
      e.x_low = std::min(e.x_low, p.x), e.x_high = std::max(e.x_high, p.x);
      e.y_low = std::min(e.y_low, p.y), e.y_high = std::max(e.y_high, p.y);
    }
  return e;
}

std::vector<std::string> draw_chart(const Chart& chart, const std::string& x_name, bool log, const Style& style) {
  const Extent e = extent_of(chart, log);
  std::vector<std::string> out{fit(printable(chart.name) + (log ? " (log)" : ""), style.width)};
  if (!e.drawable) {
    out.push_back(fit("  no numbers to draw", style.width));
    return out;
  }
  const Axis y(e.y_low, e.y_high, log ? Axis::Scale::log : Axis::Scale::linear, std::max(style.height / 3, 2));
  int left = 1;
  for (const Axis::Tick& tick : y.ticks()) left = std::max(left, columns_of(tick.text) + 1);
  const int columns = std::max(style.width - left - 1, 8);
  const Axis x(e.x_low, e.x_high, x_name == "time" ? Axis::Scale::clock : Axis::Scale::linear,
               std::max(columns / 14, 2));

  Canvas canvas(columns, style.height, style);
  for (const Trace& trace : chart.traces) draw_trace(canvas, trace, x, y, log);
  std::vector<std::string> texts(static_cast<size_t>(style.height));
  for (const Axis::Tick& tick : y.ticks())
    texts[static_cast<size_t>(style.height - 1 - dot_of(y, tick.value, style.height))] = tick.text;
  for (int row = 0; row < style.height; ++row) {
    const std::string& text = texts[static_cast<size_t>(row)];
    const std::string side = text.empty() ? (style.utf8 ? "│" : "|") : (style.utf8 ? "┤" : "+");
    out.push_back(std::string(static_cast<size_t>(std::max(left - columns_of(text), 0)), ' ') + text + side +
                  canvas.row(row));
  }
  std::vector<std::string> bottom(static_cast<size_t>(columns), style.utf8 ? "─" : "-");
  for (const Axis::Tick& tick : x.ticks())
    bottom[static_cast<size_t>(dot_of(x, tick.value, columns))] = style.utf8 ? "┬" : "+";
  std::string line = std::string(static_cast<size_t>(left), ' ') + (style.utf8 ? "└" : "+");
  for (const std::string& piece : bottom) line += piece;
  out.push_back(line);
  out.push_back(fit(x_texts(x, left + 1, columns, x_name), left + 1 + columns));
  return out;
}

}  // namespace weft::weft_watch
