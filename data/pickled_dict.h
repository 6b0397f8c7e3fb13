// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "io/file_reader.h"
#include "io/pickle/pickle_value.h"

namespace weft::data {

/// A pickled dict of numbers, texts, lists of them and NumPy arrays: the python version of CIFAR, and its copies that
/// Python 3 and NumPy 1 or 2 wrote by any protocol. The classes that a pickle names are looked up in a table
/// (io/pickle/usual_names.h); nothing is imported or run.
class PickledDict {
 public:
  /// Errors: `data: FILE: …`: no such file, no pickle, one that asks for anything else (io/pickle/unpickler.h).
  explicit PickledDict(const std::filesystem::path& path);

  /// An array of two dimensions, u8 [rows, columns] row by row, in the memory of the PickledDict.
  struct Rows {
    int64_t rows = 0, columns = 0;
    const uint8_t* values = nullptr;
  };
  /// The value of a key. Errors: there is none, or it is something else. Whole numbers may be an array of any type of
  /// them; texts may be bytes.
  std::vector<int64_t> integers(std::string_view key) const;
  std::vector<std::string> texts(std::string_view key) const;
  Rows rows(std::string_view key) const;

 private:
  const PickleValue& at(std::string_view key) const;
  template <class T>
  const T& at(std::string_view key, const char* expected) const;
  template <class T>
  std::vector<const T*> list(std::string_view key, const char* expected) const;

  FileReader file_;
  Pickle pickle_;
};

}  // namespace weft::data
