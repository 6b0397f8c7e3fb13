// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "apps/weft_watch/axis.h"
#include "apps/weft_watch/canvas.h"
#include "apps/weft_watch/comparison.h"

namespace weft::weft_watch {

/// The ends of both axes over all traces; the y axis has some room above and below. Empty traces: not `drawable`.
struct Extent {
  double x_low = 0, x_high = 0, y_low = 0, y_high = 0;
  bool drawable = false;
};
/// With `log`, points that are not positive are ignored.
Extent extent_of(const Chart& chart, bool log);

/// A chart as lines, each `style.width` columns wide: title, plot with axes, labels of the x axis.
std::vector<std::string> draw_chart(const Chart& chart, const std::string& x, bool log, const Style& style);

/// Text cut or padded to this many columns.
std::string fit(const std::string& text, int columns);
/// Columns that a UTF-8 text takes: every character here is one column wide.
int columns_of(const std::string& text);

}  // namespace weft::weft_watch
