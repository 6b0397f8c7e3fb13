// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "apps/weft_watch/comparison.h"
#include "apps/weft_watch/summary_table.h"

namespace weft::weft_watch {

/// The whole comparison as one HTML page that loads nothing and runs no script: charts as inline SVG; boxes that hide
/// a run, or show the log scale or the raw curves, by CSS alone; a table; light or dark as the reader's system.
/// `again`: as html_head's.
std::string html_page(const std::vector<Run>& runs, const std::vector<Chart>& charts, const SummaryTable& table,
                      const std::vector<std::string>& notes, const Options& options, double again);

}  // namespace weft::weft_watch
