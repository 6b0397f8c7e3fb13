// SPDX-License-Identifier: Apache-2.0
#include "apps/weft_watch/terminal_chart.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string>

#include "core/text.h"

namespace weft::weft_watch {
namespace {

/// Colours from the terminals' palette of 256: distinct from each other, and from black and white.
constexpr std::array<int, 10> kColors{33, 208, 35, 203, 135, 137, 205, 245, 142, 44};
constexpr std::string_view kSigns = "*+ox#@%&=~";

std::string colored(const std::string& text, size_t run, const Style& style) {
  return style.color ? fmt::format("\033[38;5;{}m{}\033[0m", kColors[run % kColors.size()], text) : text;
}

std::string sign_of(size_t run) { return std::string(1, kSigns[run % kSigns.size()]); }

/// U+2800 and the dots, in UTF-8.
std::string braille(uint8_t dots) {
  return {'\xE2', static_cast<char>(0xA0 | (dots >> 6)), static_cast<char>(0x80 | (dots & 0x3F))};
}

}  // namespace

Canvas::Canvas(int columns, int rows, const Style& style)
    : columns_(columns), rows_(rows), style_(style), cells_(static_cast<size_t>(columns) * static_cast<size_t>(rows)) {}

void Canvas::dot(int x, int y, size_t run) {
  if (x < 0 || y < 0 || x >= dots_wide() || y >= dots_high()) return;
  const int wide = style_.braille ? 2 : 1, high = style_.braille ? 4 : 1;
  Cell& cell = cells_[static_cast<size_t>(y / high * columns_ + x / wide)];
  // Unicode numbers the dots down the left column, then down the right one, and later added a fourth row.
  constexpr std::array<std::array<uint8_t, 2>, 4> bits{{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}};
  cell.dots |= bits[static_cast<size_t>(y % high)][static_cast<size_t>(x % wide)];
  cell.run = run;
}

/// Bresenham's line (1965).
void Canvas::line(int x0, int y0, int x1, int y1, size_t run) {
  const int dx = std::abs(x1 - x0), dy = -std::abs(y1 - y0), sx = x0 < x1 ? 1 : -1, sy = y0 < y1 ? 1 : -1;
  for (int error = dx + dy;;) {
    dot(x0, y0, run);
    if (x0 == x1 && y0 == y1) return;
    const int twice = 2 * error;
    if (twice >= dy) error += dy, x0 += sx;
    if (twice <= dx) error += dx, y0 += sy;
  }
}

std::string Canvas::row(int row) const {
  std::string out;
  for (int column = 0; column < columns_; ++column) {
    const Cell& cell = cells_[static_cast<size_t>(row * columns_ + column)];
    if (cell.dots == 0)
      out += ' ';
    else
      out += colored(style_.braille ? braille(cell.dots) : sign_of(cell.run), cell.run, style_);
  }
  return out;
}

std::string marker(size_t run, const Style& style) {
  return colored(style.braille ? "\u2501\u2501" : sign_of(run), run, style);
}

namespace {

constexpr int kUsualWidth = 80, kNarrowest = 24;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// The locale's character set, from the deciding variables in their order.
bool locale_is_utf8() {
  std::string locale;
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"})
    if (locale.empty()) locale = environment(name);
  std::transform(locale.begin(), locale.end(), locale.begin(), [](unsigned char c) { return std::toupper(c); });
  return locale.find("UTF-8") != std::string::npos || locale.find("UTF8") != std::string::npos;
}

int terminal_width() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const std::string columns = environment("COLUMNS");
  int width = 0;
  std::from_chars(columns.data(), columns.data() + columns.size(), width);
  return width > 0 ? std::min(width, 1000) : kUsualWidth;
}

}  // namespace

bool is_terminal() { return ::isatty(STDOUT_FILENO) == 1; }

Style terminal_style(const Options& options, size_t runs) {
  Style style;
  style.width = std::max(options.width > 0 ? options.width : terminal_width(), kNarrowest);
  style.height = options.height;
  style.color =
      options.color == "always" || (options.color == "auto" && is_terminal() && environment("NO_COLOR").empty());
  style.utf8 = options.symbols == "braille" || (options.symbols == "auto" && locale_is_utf8());
  // Without colour, several runs in dots look the same.
  style.braille = options.symbols == "braille" || (style.utf8 && (style.color || runs <= 1));
  return style;
}

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
