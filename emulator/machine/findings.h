// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

namespace emulator {

/// Prints `weft-emulate: KIND: TEXT` on stderr, once per key, and at most 20 times per kind. The program continues and
/// will exit with options().exit_code. Returns whether the text was printed.
bool report_finding(std::string kind, std::string text, std::string key);
/// A kernel died, or an instruction or a call is not emulated, which was printed: the program will end with
/// options().exit_code, whether it looks at its errors or not.
void count_fault();
/// An error or a finding as it was printed: for the profile.
struct Told {
  std::string kind, text;
};
void keep_told(std::string kind, std::string text);
std::vector<Told> all_told();
/// Called at the program's end, before its findings are counted.
inline void (*before_the_end)() = nullptr;

}  // namespace emulator
