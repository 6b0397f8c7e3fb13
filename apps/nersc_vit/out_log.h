// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <fstream>
#include <string>

namespace weft::nersc_vit {

/// Lines as Python's logging writes them, `2026-11-22 01:30:00,123 - root - INFO - TEXT`, on stdout and, on rank 0, in
/// the run's out.log.
class OutLog {
 public:
  /// Lines go to this file too, behind what it holds. Errors: it cannot be opened.
  void open(const std::filesystem::path& path);
  void info(const std::string& text);

 private:
  std::ofstream file_;
};

/// A number as Python prints it: the shortest text that reads back as the same, with a decimal point or an exponent.
std::string python_number(double value);

}  // namespace weft::nersc_vit
