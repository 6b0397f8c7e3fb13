// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <cstring>

// The bytecode: PTX instructions are lowered to it when a kernel is first launched.

namespace emulator::ptx {

constexpr int kLanes = 32;
struct Warp;
struct Instruction;

/// Executes one instruction for the lanes of warp.mask and returns the next instruction: normally `i + 1`.
/// nullptr ends the warp's turn; then the handler has set the reason in Warp (block, yield, exit; see warp.h).
using Handler = const Instruction* (*)(Warp& warp, const Instruction* i);

/// Where an operand lies: a byte offset into the warp's registers, or, with kConstant set, into the kernel's constants.
/// Both hold 32 lanes side by side: of 4 bytes for types of up to 32 bits (8 and 16 bits in the low ones; the upper ones
/// are 0), of 8 bytes for 64, of 16 for 128. Predicates are no lanes but one word of 32 bits: a Ref is then its index.
using Ref = uint32_t;
constexpr Ref kConstant = 0x80000000u;
constexpr Ref kNoRef = 0x7fffffffu;  ///< the sink `_`, or an operand that is not there

/// A guard: 0 for none, else (index of the predicate + 1) * 2 + negated.
using Guard = uint32_t;

struct Instruction {
  Handler run;
  Ref d, a, b, c;
  Guard guard;
  uint32_t line;     ///< index in Kernel::lines
  uint64_t imm;      ///< the handler's own: an offset, a shift, a mask
  const void* more;  ///< the handler's own, for what has many operands: owned by the Kernel (Lowering::keep)
  uint32_t flags;    ///< kLeader and kOwnFlags upwards, the handler's own
  uint32_t aux;      ///< the handler's own
};
static_assert(sizeof(Instruction) == 56);

constexpr uint32_t kLeader = 1;     ///< begins a basic block: lanes that went apart may meet here
constexpr uint32_t kJump = 2;       ///< `imm` is the index of a statement, of which lower() makes the distance to its first
                                    ///< instruction, in bytes from this one
constexpr uint32_t kOwnFlags = 16;  ///< bits from 4 up are the handler's own

}  // namespace emulator::ptx
