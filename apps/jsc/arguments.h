// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <string>
#include <vector>

namespace weft::jsc {

/// The command line without the program; `--batch-size 4` is the course's `--batch_size 4`.
inline std::vector<std::string> with_underscores(int argc, char** argv) {
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  for (std::string& argument : arguments)
    if (argument.starts_with("--"))
      std::replace(argument.begin() + 2,
                   argument.begin() + static_cast<std::ptrdiff_t>(std::min(argument.find('='), argument.size())), '-',
                   '_');
  return arguments;
}

}  // namespace weft::jsc
