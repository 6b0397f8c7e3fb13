// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <string>

#include "io/file_reader.h"

namespace weft {

/// The kind of a file or folder that another program wrote, and how to convert it for Weft.
struct FileKind {
  std::string name;  ///< `Keras' weights (HDF5)`; "": unknown
  std::string cure;  ///< one sentence
};

/// Decides by the content, or by the name if the content has no sign. A Git LFS pointer is an error of FileReader
/// itself.
FileKind kind_of(const FileReader& file);
/// Decides by the names of the folder's files.
FileKind kind_of_folder(const std::filesystem::path& folder);

/// Throws as refuse() where the kind is known; returns else.
void refuse_known(const FileReader& file, const std::string& expected);
/// Throws `WHAT: FILE: it is KIND, expected EXPECTED. CURE`, or for an unknown kind `expected EXPECTED, got OTHERWISE`.
[[noreturn]] void refuse(const FileReader& file, const std::string& expected,
                         const std::string& otherwise = "something else");

}  // namespace weft
