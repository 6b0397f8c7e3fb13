// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <set>
#include <utility>

#include "emulator/ptx/lower/lowering.h"
#include "emulator/ptx/lower/register_places.h"
#include "emulator/ptx/parse/symbols.h"

namespace emulator::ptx {

struct Lowering::State {
  Module& module;
  Function body;  ///< calls inlined
  std::unique_ptr<Kernel> kernel;
  RegisterPlaces places;
  const Liveness* liveness = nullptr;
  std::unique_ptr<Symbols> symbols;
  size_t current = 0;  ///< statement

  std::vector<char> constants;
  std::map<std::pair<uint64_t, int>, Ref> constant_refs;
  std::map<std::pair<int, int>, Ref> scratch;  ///< keys are bytes and number; predicates have 0 and number
  struct Swaps {
    bool known = false;
    std::map<int, const Statement*> written = {};      ///< the statement that writes a register; nullptr: several
    std::set<std::pair<int, int64_t>> addresses = {};  ///< registers and offsets that atom.cas has
  } swaps = {};
  Ref false_predicate = kNoRef;  ///< a word that is never written
};

}  // namespace emulator::ptx
