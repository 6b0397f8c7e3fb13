// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>

#include "emulator/ptx/instructions/addresses.h"

// Matrices in the registers of a warp. All fragments of PTX (ISA 9.0, "Matrix Fragments for mma" and ldmatrix) follow
// one rule: a register of 32 lanes is, as it lies in memory, a block of 8 lines, and four lanes hold a line. A line is
// 16 bytes (32 of f64). Lines are rows of a, columns of b, rows of sums; along a line runs the depth, or of sums the
// columns.
//
// Register r of an operand of several blocks is the block of lines r % (lines / 8), the part r / (lines / 8) of depth.
// A block of 8 x 8 accumulators is one f16 register, or two of 32 or 64 bits, which hold even and odd columns.

namespace emulator::ptx::matrix {

constexpr int kMostRegisters = 8;
using Registers = std::array<Ref, kMostRegisters>;

/// The registers (or constants) of a vector or a single operand; how many there are.
inline int read_registers(Lowering& l, const Operand& operand, Type type, bool written, Registers& to) {
  const bool many = operand.kind == Operand::Kind::vector;
  const size_t count = many ? operand.parts.size() : 1;
  if (count > kMostRegisters) l.unknown("too many registers");
  to.fill(kNoRef);
  for (size_t k = 0; k < count; ++k) {
    const Operand& one = many ? operand.parts[k] : operand;
    to[k] = written ? l.destination(one) : l.source(one, type);
  }
  return static_cast<int>(count);
}

/// The first step of a .sync.aligned instruction's handler. True: all 32 lanes are here and execute it. False: `next`
/// is what the handler returns.
inline bool whole_warp(Warp& w, const Instruction* i, const char* what, const Instruction*& next) {
  constexpr uint32_t kAll = ~0u;
  if (w.mask == kAll) [[likely]] {
    const uint32_t lanes = w.lanes(i);
    if (lanes == kAll) [[likely]]
      return true;
    if (lanes != 0)
      w.fail(i, std::countr_zero(lanes), FaultCode::launch_failure,
             cat(what, ": its guard is not the same for all lanes of the warp"));
    next = i + 1;
    return false;
  }
  if (!w.together(kAll)) {
    next = w.meet(i, what, kAll);
    return false;
  }
  if (w.lanes(i) == 0) {
    next = i + 1;
    return false;
  }
  w.fail(i, std::countr_zero(w.mask), FaultCode::launch_failure,
         cat(what, ": it needs all 32 lanes of the warp, and some have exited or never were"));
}

/// `m16n8k16` and the like; false when `text` is none.
struct Shape {
  int m = 0, n = 0, k = 0;
  bool operator==(const Shape&) const = default;
};
bool read_shape(std::string_view text, Shape& shape);

/// mma.sync, wmma.mma: d = a b + c, all of it in registers. The product of a row and a column of bits is popc(a & b) or
/// popc(a ^ b).
struct Multiply {
  Shape shape;
  Type c_type = Type::none, d_type = Type::none;  ///< f16, f32, s32, f64
  bool saturate = false;
  bool exclusive = false;  ///< products of bits by .xor, else by .and
  Registers d, a, b, c;
};
/// The handler for elements of these types; nullptr when there is none.
Handler multiply_handler(Type a, Type b);
constexpr int kBitsOfPart = 128;  ///< a line's bits in one register
/// Reads `.xor.popc` or `.and.popc`, which products of bits have and no others.
void read_bit_operation(Lowering& l, Multiply& m, Type element);
/// Whether an element is an integer of 4 or 8 bits.
bool is_integer(Type element);
/// Reads the modifiers that mma and mma.sp share (the caller reads `others`) and the types of the accumulators; returns
/// whether .sync was there. Then the registers, with rows of a as deep as they are stored.
bool read_modifiers(Lowering& l, Multiply& m, std::initializer_list<std::string_view> others);
void read_operands(Lowering& l, Multiply& m, int depth_of_a);
/// Registers that an operand of this many lines needs, or sums of m x n.
int operand_registers(int lines, int depth, Type type);
int sum_registers(int m, int n, Type type);

// The parts of matrix_family() in other files. is_sparse(): the current mma is mma.sp.
bool is_sparse(const Lowering& l);
void lower_sparse_mma(Lowering& l);
void lower_ldmatrix(Lowering& l);
void lower_stmatrix(Lowering& l);
void lower_movmatrix(Lowering& l);
void lower_wmma_load(Lowering& l);
void lower_wmma_store(Lowering& l);
void lower_wmma_mma(Lowering& l);

}  // namespace emulator::ptx::matrix
