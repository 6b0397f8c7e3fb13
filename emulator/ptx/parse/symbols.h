// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "emulator/ptx/run/kernel.h"

namespace emulator::ptx {

/// The addresses of a kernel's variables and parameters: those of .shared and .local that its code names are assigned here.
class Symbols {
 public:
  /// Fills in the kernel's parameters and its sizes of shared and local memory.
  Symbols(const Module& module, const Function& body, Kernel& kernel);

  struct Place {
    uint64_t address = 0;
    Space space = Space::generic;
  };
  /// nullptr: there is none of this name, or it is a function.
  const Place* find(const Operand& symbol) const;

 private:
  void place_parameters(const Function& body, Kernel& kernel);
  void place_local(const Function& body, Kernel& kernel);
  void place_shared(const Module& module, const Function& body, Kernel& kernel);

  std::vector<Place> of_body_;  ///< indexed as Function::variables
  std::unordered_map<std::string_view, Place> of_name_;
};

}  // namespace emulator::ptx
