// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "emulator/ptx/lower/lowering.h"
#include "emulator/ptx/lower/register_places.h"

// How statements pass on undefined values, for --check uninitialised. A slot is 128 bytes of the register file, or a
// predicate.

namespace emulator::ptx {

struct ValueStep {
  enum class Rule : uint8_t {
    combine,  ///< each result is undefined if a source is, unless a decider settles it
    move,     ///< slot k of the results is slot k of the sources
    select,   ///< the first half of the sources where `deciders[0]` is as it says, else the second half
    access,   ///< the sources are addresses; the access itself notes the values
    shuffle,  ///< as `access`, but the results are the exchange's own
    use,      ///< the sources must be defined
    back,     ///< the end of a called function: its registers are free
  };
  /// A predicate that settles the result where it is defined and has this value.
  struct Decider {
    uint32_t slot;
    bool value;
  };
  Rule rule = Rule::use;
  std::string_view op;
  std::vector<uint32_t> to, from;  ///< slots; kNoSlot: a constant or the sink
  std::vector<Decider> deciders;

  static constexpr uint32_t kNoSlot = ~0u;
};

/// A kernel's statements. A statement's step belongs to its first instruction.
struct ValueFlow {
  uint32_t registers = 0;         ///< slots before the predicates
  std::vector<uint32_t> step_at;  ///< indexed by instruction: 0, or 1 + index of `steps`
  std::vector<ValueStep> steps;
};

/// Notes the current statement, whose bytecode begins at `first` and is emitted already.
void note_values(Lowering& l, const RegisterPlaces& places, const Opcode& opcode, size_t first, ValueFlow& flow);

}  // namespace emulator::ptx
