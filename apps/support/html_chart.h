// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "apps/support/trace.h"

namespace weft::support {

/// A chart as an SVG element for a page that styles the classes `runN`, `raw`, `grid` and `tick`. Empty
/// if there is nothing to draw (on a log scale: nothing positive). With `log_x`, where x must be positive, the x axis
/// is logarithmic, too. `runs`: their names, by the traces' numbers.
std::string svg_chart(const Chart& chart, const std::vector<std::string>& runs, const std::string& x, bool log,
                      bool log_x = false);

/// The beginning of a page: its head, the style of charts and tables with `more` after it, the title as headline.
/// `again`: seconds after which a browser reloads it, 0: never.
std::string html_head(const std::string& title, const std::string& more, double again);

/// A chart on both scales of y, chosen by the box `log`; the linear scale on a page without the box.
std::string html_figure(const Chart& chart, const std::vector<std::string>& runs, const std::string& x,
                        bool log_x = false);

/// Text escaped for HTML: `<`, `&` and quotes escaped, control characters and bytes that are not UTF-8 replaced.
std::string html_text(const std::string& text);

}  // namespace weft::support
