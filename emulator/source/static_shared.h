// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace emulator::source {

/// One `__shared__` variable: a function's static variable in the program's thread-local storage.
struct SharedVariable {
  size_t offset, bytes;  // in the thread-local storage
  std::string name;      // mangled

  /// The mangled function that it belongs to.
  std::string_view function() const { return std::string_view(name).substr(0, name.rfind('E')); }
};

/// All of them, by offset, read from the program's symbol table; empty when the program is stripped.
const std::vector<SharedVariable>& shared_variables();

/// The variable that holds `offset`, or nullptr.
const SharedVariable* find_shared_variable(size_t offset);

/// `tile` for the mangled name of a function's static variable.
std::string plain_name(const std::string& mangled);

}  // namespace emulator::source
