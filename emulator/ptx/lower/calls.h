// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "emulator/ptx/run/instruction.h"

namespace emulator::ptx {

/// The instruction after a body's last one.
const Instruction* run_off_code(Warp& w, const Instruction* i);

}  // namespace emulator::ptx
