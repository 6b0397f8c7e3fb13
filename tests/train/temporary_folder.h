// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <fstream>
#include <string>

#include "kernels/error.h"
#include "tests/support/temporary_folder.h"

namespace weft::test {

using TemporaryFolder = tests::TemporaryFolderOf<std::filesystem::path>;

inline std::string read_file(const std::filesystem::path& path) { return tests::read_text(path.string()); }

inline void write_file(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

/// The text of the weft::Error that `body` throws; "(no error)" when it throws none.
template <class Body>
std::string error_of(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "(no error)";
}

}  // namespace weft::test
