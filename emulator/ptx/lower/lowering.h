// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "emulator/ptx/run/kernel.h"

namespace emulator::ptx {

/// From the tree to bytecode. Each instruction is handled in one file: its family's has the handlers and the function
/// that lowers it, and names both in a table (families()).
class Lowering {
 public:
  /// The current instruction. A lowering function must refuse an unknown instruction: unknown().
  const Statement& statement() const;
  const Operand& operand(size_t i) const;  ///< one of Kind::none past the last
  size_t operands() const;
  std::string_view op() const;
  bool has(std::string_view mod) const;
  /// The i-th modifier that is a type, or Type::none.
  Type type(int i = 0) const;
  const std::vector<std::string_view>& mods() const;

  /// Where an operand is read: a register or a constant, as lanes of bytes_of(type). Integers and reals become
  /// what `type` makes of them (an f64 literal for an f32 instruction is rounded). Symbols become their addresses
  /// (variables: as the space's own address; see address()).
  Ref source(const Operand& operand, Type type);
  /// A constant of 32 equal lanes.
  Ref constant(uint64_t bits, int bytes);
  /// Where an operand is written; kNoRef for `_`.
  Ref destination(const Operand& operand);
  /// The index of a predicate that is read or written; kNoRef for `_`. `negated` is set for !%p (read only).
  Ref predicate(const Operand& operand, bool* negated = nullptr);
  /// [ … ]: base and offset. A base that is a symbol or an integer becomes a constant of 8 lanes' bytes. Addresses of
  /// .shared are offsets in the block's shared memory (from kSharedBase). Addresses of .local are offsets in the lane's
  /// local memory, of .param in the kernel's parameters, others are addresses of the process.
  struct Address {
    Ref base;          ///< lanes of `base_bytes`
    int base_bytes;    ///< 4 or 8: registers of 32 bits may address .shared and .local
    int64_t offset;
    bool is_constant;  ///< the base is a constant: `base_value`
    uint64_t base_value;
  };
  Address address(const Operand& operand);
  /// Whether an atom.cas of this function has the same address [ … ], from one register.
  bool is_compared_and_swapped(const Operand& operand);
  int register_bytes(const Operand& operand) const;  ///< a register's declared width; else 0
  Type register_type(const Operand& operand) const;  ///< a register's type, else Type::none

  /// Appends an instruction with the guard and the line of the current instruction. The reference ends with the next
  /// emit().
  Instruction& emit(Handler run, Ref d = kNoRef, Ref a = kNoRef, Ref b = kNoRef, Ref c = kNoRef);
  /// For Instruction::more: lives as long as the kernel.
  template <class T>
  const T* keep(T value) {
    auto owned = std::make_shared<T>(std::move(value));
    const T* const pointer = owned.get();
    kernel().kept.push_back(std::move(owned));
    return pointer;
  }
  // Calls of functions without a body. The others are inlined before anything is lowered, with `ret` as bra. Arguments
  // and results of 4 or 8 bytes are registers by then (st.param and ld.param have become mov): the parts of the lists
  // are Kind::reg, Kind::sink (never stored or loaded), or Kind::symbol. The last is a variable that is something else
  // and lies in the lane's local memory like a variable of .local.
  /// The function that is called; empty for an indirect call.
  std::string_view callee() const;
  size_t call_arguments() const;
  /// The register of an argument of 4 or 8 bytes. unknown() for others, a structure for instance.
  Ref call_argument(size_t i);
  int call_argument_bytes(size_t i) const;  ///< 4 or 8
  /// Where the result goes, of 4 or 8 bytes; kNoRef when nobody reads it or there is none.
  Ref call_result();
  int call_result_bytes() const;  ///< 0 with kNoRef

  /// Scratch of `bytes` (4, 8 or 16) a lane between one statement's instructions; `i` tells several
  /// apart. The next statement may reuse it.
  Ref scratch(int bytes, int i = 0);

  /// The registers that will be read after the current statement, but not written by it.
  struct Kept {
    Ref at;
    int bytes;  ///< 4, 8 or 16 a lane; 0 of a predicate
  };
  std::vector<Kept> kept_over() const;

  Kernel& kernel();
  const Function& function() const;
  const Module& module() const;
  int capability() const;

  /// Fault: `unsupported PTX: "mma.sync.… " at x.cu:12 (why)`. Never returns.
  [[noreturn]] void unknown(std::string_view why = "") const;

 private:
  friend std::unique_ptr<Kernel> lower(Module&, Function&);
  struct State;
  State* state_ = nullptr;
};

/// An instruction's operands as register allocation must know them before lowering.
enum class Roles : uint8_t {
  first_written,   ///< operand 0 (with all parts of a vector or pair) is written, all others are read: the usual case
  all_read,        ///< st, red, bar, …
  first_updated,   ///< operand 0 is read and written, later than the instruction perhaps (wgmma): its registers get storage
                   ///< of their own, shared with nothing but copies of them
};

// A destination may share the register of a source that is read for the last time. Both must be single registers of one
// width, and the opcode must work lane by lane (can_work_in_place() in accesses.cpp has the list). Such a lowering
// that emits several instructions must write its destination after the last read of a source. For all
// other opcodes, and for vectors and p|q, destinations and sources never share.

/// One opcode: `lower` reads the instruction through Lowering and emits bytecode (one instruction or several).
struct Opcode {
  std::string_view op;  ///< `mad`, or with modifiers where they decide: `cp.async.bulk.tensor`; the longest name wins
  void (*lower)(Lowering& l);
  Roles roles = Roles::first_written;
};
struct Family {
  const Opcode* opcodes;
  size_t count;
};

// The families, a file each. arithmetic_*.cpp: integers, floats, conversions; memory_*.cpp: ld, st, atomics; warp_*.cpp:
// control, shuffles, votes, barriers; matrix_*.cpp: ldmatrix, mma, wgmma; hopper_*.cpp: mbarrier, TMA, clusters.
Family integer_family();
Family float_family();
Family half_family();
Family convert_family();
Family move_family();
Family memory_family();
Family atomic_family();
Family copy_family();      // cp.async, prefetch, …
Family call_family();      // calls that are not inlined
Family texture_family();   // tex, tld4, suld, sust, txq, suq
Family control_family();   // bra, brx, ret, exit, trap, call of built-in functions
Family warp_family();      // shfl, vote, match, redux, activemask, elect
Family barrier_family();   // bar, barrier, membar, fence, nanosleep
Family matrix_family();    // ldmatrix, stmatrix, movmatrix, mma, wmma
Family wgmma_family();
Family mbarrier_family();
Family bulk_family();      // cp.async.bulk, cp.reduce.async.bulk, tensormap
Family cluster_family();   // mapa, getctarank, barrier.cluster is in barrier_family, st.async, red.async, setmaxnreg

/// nullptr when it is unknown.
const Opcode* find_opcode(const Statement& statement);

std::unique_ptr<Kernel> lower(Module& module, Function& function);

}  // namespace emulator::ptx
