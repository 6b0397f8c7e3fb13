// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "apps/support/axis.h"
#include "apps/weft_watch/comparison.h"
#include "apps/weft_watch/options.h"

namespace weft::weft_watch {

using support::Axis;
using support::Extent;
using support::number_text;

/// How to draw on a terminal.
struct Style {
  int width = 80;        ///< columns
  int height = 12;       ///< rows of a chart
  bool braille = false;  ///< eight dots per character; else one sign per character, different for each run
  bool utf8 = false;     ///< lines and dashes that are not ASCII
  bool color = false;
};

/// Dots in character cells. Where runs cross, the one drawn last is on top.
class Canvas {
 public:
  Canvas(int columns, int rows, const Style& style);

  int dots_wide() const { return columns_ * (style_.braille ? 2 : 1); }
  int dots_high() const { return rows_ * (style_.braille ? 4 : 1); }
  /// (0, 0) is the upper left. Dots outside of the canvas are not drawn.
  void dot(int x, int y, size_t run);
  void line(int x0, int y0, int x1, int y1, size_t run);

  /// A row of cells, `columns` wide.
  std::string row(int row) const;

 private:
  struct Cell {
    uint8_t dots = 0;
    size_t run = 0;
  };
  int columns_, rows_;
  Style style_;
  std::vector<Cell> cells_;
};

/// The sign of a run, in its colour.
std::string marker(size_t run, const Style& style);

/// Whether stdout is a terminal.
bool is_terminal();

/// How to draw `runs` runs on stdout: what the options say, else the terminal's width, the locale, NO_COLOR
/// (no-color.org).
Style terminal_style(const Options& options, size_t runs);

/// A chart as lines, each `style.width` columns wide: title, plot with axes, labels of the x axis.
std::vector<std::string> draw_chart(const Chart& chart, const std::string& x, bool log, const Style& style);

/// Text cut or padded to this many columns.
std::string fit(const std::string& text, int columns);
/// Columns that a UTF-8 text takes: every character here is one column wide.
int columns_of(const std::string& text);

}  // namespace weft::weft_watch
