// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "emulator/ptx/parse/ast.h"

// Calls that are not inlined: of recursive functions, through registers, and of functions that ask for memory of the
// stack. A called function follows the kernel's code as a section with its own registers. A thread's stack lies
// after its .local variables and grows upwards: the arguments and results, at offsets that caller and callee agree
// on, then the callee's variables. The caller keeps the registers that it will read again (calls.cpp).

namespace emulator::ptx {

// Opcodes that no text can have: a name in PTX has no blank.
constexpr std::string_view kEnterFrame = "enter frame";  ///< {incoming, frame, top}, bytes, alignment, incoming bytes
constexpr std::string_view kCallFunction =
    "call function";  ///< section, top; or register, top, index in Function::prototypes
constexpr std::string_view kReturnToCaller = "return to caller";
constexpr std::string_view kGrowStack = "grow stack";   ///< new top, top, bytes
constexpr std::string_view kEndOfCode = "end of code";  ///< after a section's last instruction

constexpr uint64_t kFrameAlign = 16;

/// Where results and parameters lie in a frame: the results first, each at a multiple of 8, or of kFrameAlign where it
/// is larger.
struct FrameLayout {
  std::vector<uint64_t> sizes;  ///< the results', a separator, and the parameters: equal in caller and callee
  uint64_t bytes = 0;
  std::string_view unfit;  ///< a parameter that no frame can hold: a register, or one aligned to more than kFrameAlign
  FrameLayout(const std::vector<Variable>& results, const std::vector<Variable>& parameters);
  bool operator==(const FrameLayout& other) const {
    return sizes == other.sizes && unfit.empty() && other.unfit.empty();
  }
  static uint64_t reserve(uint64_t& end, uint64_t bytes);  ///< the offset of the next one
};

/// Assigns the .local variables of sections their offsets in the frames and makes references to them relative
/// to the frames' registers.
void place_frames(Function& body);

/// `code` replaces a body's code; statement i of the old one begins at start[i].
void replace_code(Function& body, std::vector<Statement> code, const std::vector<int>& start);

}  // namespace emulator::ptx
