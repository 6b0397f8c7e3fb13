// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace weft::support {

/// A number as Python's repr() shows a float, for lines that Python programs print: the shortest text that reads back
/// as the same, `0.1`, `25.0`, `1e-05`, `1e+16`, `inf`, `nan`.
std::string python_number(double value);

/// `2026-11-22 01:55:14,123 - root - INFO - TEXT`, the local time ahead, as Python's logging writes a line.
std::string python_log_line(const std::string& text);

}  // namespace weft::support
