// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "apps/weft_watch/comparison.h"

namespace weft::weft_watch {

/// A chart as an <svg> element for a page that styles the classes `runN`, `raw`, `grid` and `tick`. Empty
/// if there is nothing to draw (on a log scale: nothing positive).
std::string svg_chart(const Chart& chart, const std::vector<Run>& runs, const std::string& x, bool log);

/// Text escaped for HTML: `<`, `&` and quotes escaped, control characters and bytes that are not UTF-8 replaced.
std::string html_text(const std::string& text);

}  // namespace weft::weft_watch
