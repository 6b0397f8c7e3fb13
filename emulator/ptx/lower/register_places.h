// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <vector>

#include "emulator/ptx/lower/liveness.h"

namespace emulator::ptx {

/// Whether each lane depends on nothing but the same lane of the operands.
bool is_lanewise(const Statement& statement);
/// Whether a statement's destination may have the slot of a source that is read for the last time.
bool can_work_in_place(const Statement& statement);

/// The slots of virtual registers in the warp's register file.
struct RegisterPlaces {
  std::vector<Ref> place;  ///< per register: a byte offset, or a predicate's word; kNoRef if unused
  uint32_t bytes = 0;      ///< per warp
  uint32_t predicates = 0;
  int most_alive = 0;                  ///< 32-bit registers that a thread needs at once
  uint32_t copies = 0, coalesced = 0;  ///< mov from register to register, and how many of them vanished
};

/// Registers that are copies of each other share a slot when their lives allow it, so that the mov disappears. An
/// accumulator that is written late (Roles::first_updated) shares with nothing but its copies.
RegisterPlaces place_registers(const Function& function, const Accesses& accesses, const Liveness& liveness,
                               const std::vector<const Opcode*>& opcodes);

/// Bytes of a register's 32 lanes: 128, 256 or 512; 0 of a predicate.
uint32_t place_bytes(Type type);
/// A mov without a guard from one register to another of the same width.
bool is_copy(const Function& function, const Statement& statement);

}  // namespace emulator::ptx
