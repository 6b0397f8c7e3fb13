// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace weft::weft_watch {

/// The command line.
struct Options {
  std::vector<std::string> runs;                     ///< PATH or NAME=PATH
  std::string metrics = "loss,accuracy,throughput";  ///< which curves
  std::string x = "step";                            ///< step, epoch, time
  double smooth = 0;                                 ///< 0 … 1
  bool log = false;                                  ///< logarithmic y axis
  std::string html;                                  ///< file to write
  bool follow = false;
  double interval = 2;         ///< seconds between redraws
  int width = 0, height = 12;  ///< columns of a line (0: the terminal's), rows of a chart
  std::string color = "auto", symbols = "auto";
  bool list = false;
};

/// Reads `weft-watch [flags] RUN…`. Empty: help was printed. Errors: UsageError.
std::optional<Options> parse_options(const std::vector<std::string>& arguments);

}  // namespace weft::weft_watch
