// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <string>

namespace emulator {

/// The program's call: return addresses, named only on demand.
class CallSite {
 public:
  static CallSite here();
  /// `/path/program(function+0x12)`, innermost first, from the first frame outside our libraries.
  std::string text() const;
  /// The first return address outside our libraries; 0: there is none.
  uintptr_t caller() const;
  bool empty() const { return count_ == 0; }

  /// While an object lives, here() on this thread returns the call for which a library's own thread works.
  class Behalf {
   public:
    explicit Behalf(const CallSite& of);
    ~Behalf();
    Behalf(const Behalf&) = delete;
    Behalf& operator=(const Behalf&) = delete;
  };

 private:
  std::array<void*, 20> frames_{};
  int count_ = 0;
};

/// A symbol as C++ has it, or the symbol itself.
std::string demangled(const char* symbol);
/// Like demangled(), without arguments if they make the name long.
std::string function_name(const char* symbol);

}  // namespace emulator
