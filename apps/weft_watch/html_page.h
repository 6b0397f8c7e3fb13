// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "apps/weft_watch/comparison.h"
#include "apps/weft_watch/summary_table.h"

namespace weft::weft_watch {

/// A chart as an <svg> element for a page that styles the classes `runN`, `raw`, `grid` and `tick`. Empty
/// if there is nothing to draw (on a log scale: nothing positive).
std::string svg_chart(const Chart& chart, const std::vector<Run>& runs, const std::string& x, bool log);

/// Text escaped for HTML: `<`, `&` and quotes escaped, control characters and bytes that are not UTF-8 replaced.
std::string html_text(const std::string& text);

/// The whole comparison as one HTML page that loads nothing and runs no script: charts as inline SVG; boxes that hide
/// a run, or show the log scale or the raw curves, by CSS alone; a table; light or dark as the reader's system.
/// `again`: seconds after which a browser reloads it, 0: never.
std::string html_page(const std::vector<Run>& runs, const std::vector<Chart>& charts, const SummaryTable& table,
                      const std::vector<std::string>& notes, const Options& options, double again);

}  // namespace weft::weft_watch
