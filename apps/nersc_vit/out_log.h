// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <fstream>
#include <iostream>

#include "apps/support/python_text.h"
#include "kernels/error.h"

namespace weft::nersc_vit {

/// Lines as Python's logging writes them, on stdout and, on rank 0, in the run's out.log.
class OutLog {
 public:
  /// Lines go to this file too, after its content. Errors: the file cannot be opened.
  void open(const std::filesystem::path& path) {
    file_.open(path, std::ios::app);
    WEFT_CHECK(file_.is_open(), "out.log: cannot write ", path.string());
  }
  void info(const std::string& text) {
    const std::string line = support::python_log_line(text) + '\n';
    std::cout << line << std::flush;  // in one piece: other ranks write too
    if (file_.is_open()) file_ << line << std::flush;
  }

 private:
  std::ofstream file_;
};

}  // namespace weft::nersc_vit
