// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>

#include "emulator/ptx/lowering.h"

namespace emulator::ptx {

/// Lowers the call at hand when it is one of a function that the system provides: vprintf, malloc, free, __assertfail.
/// False: it is none of these.
bool lower_builtin_call(Lowering& l);

}  // namespace emulator::ptx
