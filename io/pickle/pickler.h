// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "io/pickle/pickle_opcodes.h"

namespace weft {

/// Writes a pickle of protocol 2, opcode by opcode; each is one line of `python3 -m pickletools`.
class Pickler {
 public:
  Pickler();

  void op(PickleOp op) { bytes_ += static_cast<char>(op); }
  void none() { op(PickleOp::none); }
  void boolean(bool value) { op(value ? PickleOp::new_true : PickleOp::new_false); }
  void integer(int64_t value);
  void number(double value);
  void text(std::string_view text);
  /// A class or function, by its name: `torch`, `FloatStorage`.
  void global(std::string_view module, std::string_view name);

  /// The finished pickle; no further opcode may follow.
  std::string finish() {
    op(PickleOp::stop);
    return std::move(bytes_);
  }

 private:
  void bytes(uint64_t value, int count);  ///< little-endian

  std::string bytes_;
};

}  // namespace weft
