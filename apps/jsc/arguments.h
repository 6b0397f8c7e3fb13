// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <string>
#include <vector>

namespace weft::jsc {

/// The command line without the program, and with one spelling of flags: `--batch_size 4` and `--batch-size 4` are the
/// same.
inline std::vector<std::string> spelled(int argc, char** argv, char from, char to) {
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  for (std::string& argument : arguments)
    if (argument.starts_with("--"))
      std::replace(argument.begin() + 2,
                   argument.begin() + static_cast<std::ptrdiff_t>(std::min(argument.find('='), argument.size())), from,
                   to);
  return arguments;
}

}  // namespace weft::jsc
