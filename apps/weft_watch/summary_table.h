// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "apps/weft_watch/comparison.h"
#include "apps/weft_watch/terminal_chart.h"

namespace weft::weft_watch {

/// The results of the runs, one row each.
struct SummaryTable {
  /// The headers after `run`: settings that differ between the runs, then each chart's name.
  std::vector<std::string> settings, metrics;
  struct Number {
    std::string last, best;  ///< empty: the run has none
    std::string best_at;     ///< the step of the best
  };
  struct Row {
    std::string run;
    std::vector<std::string> settings;
    std::vector<Number> numbers;
    std::string state;  ///< finished, failed, or the last step
  };
  std::vector<Row> rows;

  SummaryTable(const std::vector<Run>& runs, const std::vector<Chart>& charts);
};

/// The table as lines of at most `style.width` columns, the runs' signs in front.
std::vector<std::string> text_of(const SummaryTable& table, const Style& style);

}  // namespace weft::weft_watch
