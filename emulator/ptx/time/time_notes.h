// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <vector>

#include "emulator/machine/time_model.h"
#include "emulator/ptx/instructions/addresses.h"
#include "emulator/ptx/lower/liveness.h"
#include "emulator/ptx/lower/register_places.h"

// The facts that --time needs of each instruction before its run: its unit, its number of ptxas's machine instructions,
// the registers that it waits for, its addresses. Made at lowering, from PTX alone: no cubin, no disassembler.

namespace emulator::ptx {

struct TimeNote {
  enum class Kind : uint8_t {
    none,  ///< no machine instruction, or a later part of a statement
    plain,
    access,  ///< a load, a store or an atomic operation
    matrix_access,  ///< ldmatrix, stmatrix
    copy,  ///< cp.async
    copy_commit,
    copy_wait,  ///< imm: groups that may be open
    bulk,       ///< TMA
    bulk_commit,
    bulk_wait,
    barrier,  ///< bar.sync, bar.arrive
    cluster_arrive,
    cluster_wait,
    mbarrier_wait,
    wgmma,
    wgmma_commit,
    wgmma_wait,  ///< imm: groups that may be open
    mma,
  };
  Kind kind = Kind::none;
  time_model::Limit unit = time_model::Limit::issue;
  Space space = Space::generic;
  bool write = false, atomic = false, bypasses_l1 = false;
  bool joined = false;      ///< atomics: lanes at the same address become a single operation, else they are serialised
  bool retried = false;     ///< in shared memory ptxas makes a loop of it: load, compute, compare and swap
  bool waits = true;        ///< barriers: not only arrives
  uint8_t bytes = 0;        ///< per lane's access
  float issue = 1;          ///< machine instructions
  float on_unit = 1;        ///< instructions that need `unit`
  float mufu = 0;           ///< instructions that need the MUFU in addition
  float flop = 0;           ///< per warp, in tensor cores, bf16's time
  float flop_f64 = 0;       ///< flop of f64, which has a rate of its own
  Addresses address, second;  ///< second: the source of cp.async
  static constexpr uint32_t kNoJoins = ~0u;
  uint32_t joins = kNoJoins;  ///< loads from shared memory: index in TimeTable::joins, kJoins for each iteration
  uint16_t turns = 1;         ///< in a loop that ptxas unrolls whole: how often it runs
  bool folded = false;        ///< there: an operand of others, but for the first turn
  int32_t stride = 0;         ///< there: how far its address moves in a turn
  Ref id = kNoRef;          ///< a barrier's number
  uint32_t imm = 0;
  uint32_t first_ref = 0;  ///< index in TimeTable::refs: operands, then results
  uint16_t reads = 0, writes = 0;
};

/// ptxas's merging of a load from shared memory with its neighbours: the first of a group reads all, and the others
/// cost nothing. The base's alignment decides, which ptxas knows for arrays in shared memory.
struct TimeJoin {
  enum : uint8_t { no, first, other } role = no;
  uint8_t bytes = 0;
  int32_t offset = 0;  ///< from its address to the group's
};
constexpr size_t kJoins = 6;  ///< in all lanes the base mod 16 is 0, 4, 8, 12, or else mod 8 it is 0, 4

/// A kernel's notes, by the number of the bytecode instruction.
struct TimeTable {
  static constexpr uint32_t kPredicate = 0x80000000u;  ///< a ref is a slot of 128 bytes of the register file, or a predicate
  std::vector<TimeNote> notes;
  std::vector<uint32_t> refs;
  std::vector<TimeJoin> joins;
};

/// Notes the current statement, whose bytecode begins at `first` and is emitted already.
void note_statement(Lowering& l, const Accesses& accesses, const RegisterPlaces& places, size_t statement, size_t first,
                    TimeTable& table);

/// Finds the loops that ptxas unrolls, common subexpressions, shared loads that become one machine instruction, and
/// atomics once per warp. Needs the kernel's complete code; `start`: each statement's first instruction.
void note_joins(const Function& body, const Accesses& accesses, const std::vector<size_t>& start, const Kernel& kernel,
                TimeTable& table);

}  // namespace emulator::ptx
