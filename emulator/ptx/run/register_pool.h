// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "emulator/ptx/lower/lowering.h"

namespace emulator::ptx {

struct Block;

void lower_setmaxnreg(Lowering& l);
/// The block has ended. Errors: Fault when only a part of a warpgroup has executed a setmaxnreg.
void check_register_requests(const Block& block);

}  // namespace emulator::ptx
