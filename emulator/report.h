// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace emulator {

/// A finding or an error of a program, as its process told it.
struct Reported {
  std::string kind, text;
};

/// The findings that processes appended to a file of WEFT_EMULATE_REPORT, a JSON object a line.
std::vector<Reported> read_reported(const std::filesystem::path& lines);

/// Whether the name's end says a format that report_text() has: .sarif, .xml (JUnit) or .json.
bool is_report_name(const std::filesystem::path& name);

/// The findings as a report of the format that the name's end says. SARIF 2.1.0 has the first source line of each text
/// as its location and the others as related locations. Their paths are relative to the working folder if they lie in
/// it. JUnit has a failed case for each finding, or a case that passed.
std::string report_text(const std::filesystem::path& name, const std::string& program,
                        const std::vector<Reported>& findings);

}  // namespace emulator
