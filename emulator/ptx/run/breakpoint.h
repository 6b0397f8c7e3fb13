// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "emulator/ptx/run/warp.h"

namespace emulator::ptx {

class Liveness;
struct RegisterPlaces;

/// A kernel's table for --break: which virtual registers hold a value at each instruction, and where.
struct DebugTable {
  struct Register {
    std::string name;
    Type type;
    Ref place;
  };
  std::vector<Register> registers;
  std::vector<std::vector<int>> live;  ///< indexed by instruction: indices of `registers`
};

/// Whether --break names this kernel: its text is part of the kernel's name, as the linker or as C++ has it.
bool breaks_in(const Kernel& kernel);
/// `start` is the first instruction of each statement of the body.
void keep_debug_table(Kernel& kernel, const Function& body, const Liveness& liveness, const RegisterPlaces& places,
                      const std::vector<size_t>& start);
/// Prints the warp's registers when `i` is what --break names and no warp of this launch has come there before.
void look_at(const Warp& w, const Instruction* i);

}  // namespace emulator::ptx
