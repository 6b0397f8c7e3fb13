// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <exception>
#include <sstream>
#include <string>
#include <utility>

namespace emulator {

/// The cause of a kernel's failure, with CUDA's numbers (cudaError_t and CUresult agree on these). All are sticky
/// except `invalid_value` and `unsupported`.
enum class FaultCode : int {
  invalid_value = 1,
  out_of_memory = 2,
  unsupported = 801,  ///< an instruction or a call that the emulator lacks: never silently skipped
  illegal_address = 700,
  launch_timeout = 702,  ///< deadlock: no thread of the grid can continue
  hardware_stack_error = 714,
  illegal_instruction = 715,
  misaligned_address = 716,
  invalid_address_space = 717,
  assertion = 710,
  launch_failure = 719,  ///< any other failure: trap, a use that the hardware leaves undefined
};

/// Thrown inside of a kernel's execution; the text gives the error, its location (kernel, block, thread, source line)
/// and its cause.
struct Fault : std::exception {
  Fault(FaultCode c, std::string t) : code(c), text(std::move(t)) {}
  const char* what() const noexcept override { return text.c_str(); }
  FaultCode code;
  std::string text;
};

/// Concatenates the arguments as text.
template <class... T>
std::string cat(const T&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

}  // namespace emulator
