// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <deque>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace weft::data {

/// A pickled dict of numbers, texts, lists of them and NumPy arrays of bytes: what the python version of CIFAR is
/// (Python 2's protocol 2, and what Python 3 writes of the same by protocols 3 and 4). The classes that a pickle names
/// are looked up in a table of three; nothing is imported or run. Sources: CPython, Lib/pickletools.py; NumPy,
/// ndarray.__reduce__.
class PickledDict {
 public:
  /// Errors: those of read_file; `pickle: FILE: expected …, got …`.
  explicit PickledDict(const std::filesystem::path& path);

  /// An array of two dimensions, u8 [rows, columns] row by row, in the memory of the PickledDict.
  struct Rows {
    int64_t rows = 0, columns = 0;
    const uint8_t* values = nullptr;
  };
  /// The value of a key. Errors: there is none, or it is something else.
  std::vector<int64_t> integers(std::string_view key) const;
  std::vector<std::string> texts(std::string_view key) const;
  Rows rows(std::string_view key) const;

 private:
  class Machine;
  struct Value {
    enum class Kind : uint8_t { none, boolean, integer, text, list, tuple, dict, callable, dtype, array };
    Kind kind = Kind::none;
    int64_t integer = 0;            ///< of callables their number in the table
    std::string_view text = {};     ///< into the file; of an array its bytes, of a dtype its name
    std::vector<uint32_t> items{};  ///< values by number; of a dict keys and values in turn, of an array its sizes
  };
  static const char* name(Value::Kind kind);
  const Value& at(std::string_view key, Value::Kind kind) const;
  const std::vector<uint32_t>& list(std::string_view key, Value::Kind of) const;

  std::string path_;
  std::vector<uint8_t> bytes_;
  std::deque<Value> values_;
  uint32_t root_ = 0;
};

}  // namespace weft::data
