// SPDX-License-Identifier: Apache-2.0
#include "apps/weft_watch/canvas.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>

namespace weft::weft_watch {
namespace {

/// Of the terminals' palette of 256: distinct from each other, and from black and white.
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

}  // namespace weft::weft_watch
