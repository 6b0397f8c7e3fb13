// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "emulator/ptx/run/kernel.h"

namespace emulator::ptx {

/// The kernel with its calls of device functions replaced by their bodies: each time with
/// registers of their own, their parameters and results being the caller's .param variables, and `ret` a branch past
/// the body. Calls of functions without a body are left: they are the emulator's own. The kernel's parsed body is used
/// up. Functions that are recursive, take stack memory or are called through registers follow as sections (frames.h).
/// Errors: Fault for calls that the headers do not allow.
Function inline_calls(Module& module, Function& kernel);

/// .param variables of calls become registers where all accesses agree on their parts, else variables of .local. Their
/// st.param and ld.param become mov, or st.local and ld.local.
void place_call_parameters(Function& function);

/// The parts of `call (results), callee, (arguments);`. nullptr: not given.
struct Call {
  const Operand* results = nullptr;
  const Operand* callee = nullptr;
  const Operand* arguments = nullptr;
};
Call read_call(const Statement& statement);

/// `file.cu:12` or `PTX line 34`, with the calls that were inlined.
std::string describe_line(const std::vector<std::string>& files, const std::vector<Line>& lines, uint32_t line);

}  // namespace emulator::ptx
