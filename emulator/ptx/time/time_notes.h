// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <vector>

#include "emulator/machine/time_model.h"
#include "emulator/ptx/instructions/addresses.h"
#include "emulator/ptx/lower/liveness.h"
#include "emulator/ptx/lower/register_places.h"

// What --time must know of each instruction before it runs: which unit it needs, how many machine instructions ptxas makes
// of it, which registers it waits for, where its addresses are. Made at lowering, from PTX alone: no cubin, no disassembler.

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
  bool joined = false;      ///< of an atomic operation: lanes that meet at an address are one, else they take turns
  bool retried = false;     ///< in shared memory ptxas makes a loop of it: load, compute, compare and swap
  bool waits = true;        ///< of a barrier: not only arrives
  uint8_t bytes = 0;        ///< per lane's access
  float issue = 1;          ///< machine instructions
  float on_unit = 1;        ///< of these, such as need `unit`
  float mufu = 0;           ///< of these, such as need the MUFU besides
  float flop = 0;           ///< of a warp, in tensor cores, bf16's time
  float flop_f64 = 0;       ///< the same of f64, which has a rate of its own
  Addresses address, second;  ///< second: the source of cp.async
  static constexpr uint32_t kNoJoins = ~0u;
  uint32_t joins = kNoJoins;  ///< of a load from shared memory: in TimeTable::joins, kJoins for each turn
  uint16_t turns = 1;         ///< in a loop that ptxas unrolls whole: how often it runs
  bool folded = false;        ///< there: an operand of others, but for the first turn
  int32_t stride = 0;         ///< there: how far its address moves in a turn
  Ref id = kNoRef;          ///< a barrier's number
  uint32_t imm = 0;
  uint32_t first_ref = 0;   ///< in TimeTable::refs: what is read, then what is written
  uint16_t reads = 0, writes = 0;
};

/// What ptxas makes of a load from shared memory and its neighbours there: the first of a group reads all of it, the
/// others come for nothing. It goes by where the base lies, which ptxas knows of arrays in shared memory.
struct TimeJoin {
  enum : uint8_t { no, first, other } role = no;
  uint8_t bytes = 0;
  int32_t offset = 0;  ///< from its address to the group's
};
constexpr size_t kJoins = 6;  ///< in all lanes the base mod 16 is 0, 4, 8, 12, or else mod 8 it is 0, 4

/// Of a kernel; by the number of the bytecode instruction.
struct TimeTable {
  static constexpr uint32_t kPredicate = 0x80000000u;  ///< a ref is a slot of 128 bytes of the register file, or a predicate
  std::vector<TimeNote> notes;
  std::vector<uint32_t> refs;
  std::vector<TimeJoin> joins;
};

/// Of the statement at hand, whose bytecode begins at `first` and is emitted already.
void note_statement(Lowering& l, const Accesses& accesses, const RegisterPlaces& places, size_t statement, size_t first,
                    TimeTable& table);

/// Finds the loops that ptxas unrolls, what is computed twice, the loads from shared memory that are one machine instruction, and the atomic
/// operations that it does once for a warp. When the kernel's code is whole; `start`: the first instruction of each statement.
void note_joins(const Function& body, const Accesses& accesses, const std::vector<size_t>& start, const Kernel& kernel,
                TimeTable& table);

}  // namespace emulator::ptx
