// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

#include "emulator/machine/time_model.h"

namespace emulator::time_model {

/// A launch in `--time-table`'s file: a line of `name=value` fields with tabs between.
struct TableLine {
  std::string kernel;  ///< mangled
  std::string gpu;     ///< as in gpu.h
  Work work;
};
/// Without a line's end. The prediction goes before the counts.
std::string to_text(const TableLine& line, const Prediction& prediction);
/// False: the text is no such line. The prediction is not read.
bool from_text(std::string_view text, TableLine& line);

}  // namespace emulator::time_model
