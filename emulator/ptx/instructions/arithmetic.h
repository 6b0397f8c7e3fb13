// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cfenv>
#include <initializer_list>
#include <string>
#include <string_view>

#include "emulator/ptx/instructions/lanes.h"
#include "emulator/ptx/instructions/numbers.h"
#include "emulator/ptx/lower/lowering.h"

// Shared by the arithmetic families: an opcode serves integers, floats and halves, and its type selects the file that
// lowers it.

namespace emulator::ptx {

// One per type. Each refuses unknown opcodes.
void lower_arithmetic(Lowering& l);  ///< one of the next three
void lower_integer(Lowering& l);
void lower_float(Lowering& l);
void lower_half(Lowering& l);

void lower_bits(Lowering& l);              ///< logic, shifts and fields
void lower_special_function(Lowering& l);  ///< ex2, lg2, sin, cos, tanh, rcp.approx …
void lower_video(Lowering& l);  ///< vadd4, vabsdiff2, …
void lower_setp(Lowering& l);
void lower_set(Lowering& l);
void lower_testp(Lowering& l);
void lower_cvta(Lowering& l);
void lower_isspacep(Lowering& l);
void lower_special_register(Lowering& l);  ///< mov, and cvt, of %tid.x and the like

inline bool is_half(Type t) { return t == Type::f16 || t == Type::bf16 || t == Type::f16x2 || t == Type::bf16x2; }

/// Refuses an instruction with a modifier that is neither a type nor one of these.
inline void allow(const Lowering& l, std::initializer_list<std::string_view> known) {
  for (const std::string_view mod : l.mods()) {
    bool found = type_of(mod) != Type::none;
    for (const std::string_view k : known) found = found || mod == k;
    if (!found) l.unknown("modifier ." + std::string(mod));
  }
}
inline void expect_operands(const Lowering& l, size_t count) {
  if (l.operands() != count) l.unknown("number of operands");
}
/// The destination of an instruction, which must not be `_`.
inline Ref result(Lowering& l) {
  const Ref d = l.destination(l.operand(0));
  if (d == kNoRef) l.unknown("no destination");
  return d;
}
/// A handler and how many sources it reads.
struct Operation {
  Handler run = nullptr;
  size_t sources = 0;
};
template <class F>
constexpr Operation as_operation() {
  return {each<F>, Signature<F>::kCount};
}
/// d = operation(a, b …), sources of one type.
inline Instruction& emit_operation(Lowering& l, const Operation& operation, Type type) {
  if (operation.run == nullptr) l.unknown();
  expect_operands(l, operation.sources + 1);
  Ref s[4] = {kNoRef, kNoRef, kNoRef, kNoRef};
  for (size_t n = 0; n < operation.sources; ++n) s[n] = l.source(l.operand(n + 1), type);
  Instruction& i = l.emit(operation.run, result(l), s[0], s[1], s[2]);
  if (operation.sources == 4) i.aux = s[3];
  return i;
}

/// .rn, .rz, .rm or .rp; to nearest where none is given.
inline Rounding rounding(const Lowering& l) {
  return l.has("rz") ? Rounding::zero : l.has("rm") ? Rounding::down : l.has("rp") ? Rounding::up : Rounding::nearest;
}

/// The machine's rounding within a scope. Operands must come from memory and results go to memory: neither crosses the
/// barriers, while the compiler may move arithmetic across a call of fesetround.
class RoundingScope {
 public:
  explicit RoundingScope(Rounding r) : before_(std::fegetround()) {
    std::fesetround(r == Rounding::zero   ? FE_TOWARDZERO
                    : r == Rounding::down ? FE_DOWNWARD
                    : r == Rounding::up   ? FE_UPWARD
                                          : FE_TONEAREST);
    asm volatile("" ::: "memory");
  }
  ~RoundingScope() {
    asm volatile("" ::: "memory");
    std::fesetround(before_);
  }
  RoundingScope(const RoundingScope&) = delete;
  RoundingScope& operator=(const RoundingScope&) = delete;

 private:
  int before_;
};

}  // namespace emulator::ptx
