// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>

#include "emulator/ptx/lower/lowering.h"

namespace emulator::ptx {

/// Lowers the current call if the system provides the function: vprintf, malloc, free, __assertfail,
/// cudaGraphSetConditional.
/// False: another function.
bool lower_builtin_call(Lowering& l);

/// Sets the value of a conditional handle of a graph. False: there is no such handle. nullptr: there are none.
inline bool (*set_graph_condition)(uint64_t handle, uint32_t value) = nullptr;

}  // namespace emulator::ptx
