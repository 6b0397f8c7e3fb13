// SPDX-License-Identifier: Apache-2.0
#include "emulator/ptx/instructions/float_operations.h"
#include "emulator/ptx/instructions/special_functions.h"

// .approx and .full: div, rcp, sqrt, rsqrt, sin, cos, lg2, ex2, tanh of f32 and f64.

namespace emulator::ptx {
namespace {

struct Exp2 {
  float operator()(float a) const { return exp2_of(a); }
};
struct Log2 {
  static constexpr bool kCostly = true;
  float operator()(float a) const { return static_cast<float>(std::log2(static_cast<double>(a))); }
};
struct Sin {
  static constexpr bool kCostly = true;
  float operator()(float a) const { return static_cast<float>(std::sin(static_cast<double>(a))); }
};
struct Cos {
  static constexpr bool kCostly = true;
  float operator()(float a) const { return static_cast<float>(std::cos(static_cast<double>(a))); }
};
struct Tanh {
  static constexpr bool kCostly = true;
  float operator()(float a) const { return static_cast<float>(std::tanh(static_cast<double>(a))); }
};
struct Reciprocal {
  float operator()(float a) const { return 1.0f / a; }
};
struct SquareRoot {
  float operator()(float a) const { return __builtin_sqrtf(a); }
};
struct ReciprocalRoot {
  float operator()(float a) const { return static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(a))); }
};
struct FullDivide {
  float operator()(float a, float b) const { return a / b; }
};
/// a * (1 / b), where the reciprocal of what is above 2^126 is zero.
struct Divide {
  float operator()(float a, float b) const {
    const uint32_t bits = bits_of(b), magnitude = bits & 0x7fffffff;
    const bool is_large = magnitude > 0x7e800000 && magnitude < 0x7f800000;
    return a / f32_of(is_large ? (bits & 0x80000000) | 0x7f800000 : bits);
  }
};

// f64: the approximations see and give the upper 32 bits only, .ftz always (PTX ISA, rcp.approx.ftz.f64).
double upper_word(double v) {
  const uint64_t bits = bits_of(v) & 0xffffffff'00000000;
  return f64_of((bits >> 52 & 0x7ff) == 0 ? bits & uint64_t{1} << 63 : v != v ? 0x7fffffff'00000000 : bits);
}
struct GrossReciprocal {
  double operator()(double a) const { return upper_word(1.0 / upper_word(a)); }
};
struct GrossReciprocalRoot {
  double operator()(double a) const { return upper_word(1.0 / __builtin_sqrt(upper_word(a))); }
};
struct ReciprocalRootF64 {
  double operator()(double a) const { return 1.0 / __builtin_sqrt(a); }
};

}  // namespace

void lower_special_function(Lowering& l) {
  const std::string_view op = l.op();
  const Type t = l.type();
  if (l.type(1) != Type::none) l.unknown("two types");
  if (op == "div" && l.has("full")) {
    allow(l, {"full", "ftz"});
    if (t != Type::f32) l.unknown();
    return emit_tidy<FullDivide>(l, t);
  }
  allow(l, {"approx", "ftz"});
  if (!l.has("approx")) l.unknown();
  if (t == Type::f64) {
    if (op == "rcp" && l.has("ftz")) return void(emit_operation(l, as_operation<GrossReciprocal>(), t));
    if (op == "rsqrt")
      return void(
          emit_operation(l, l.has("ftz") ? as_operation<GrossReciprocalRoot>() : as_operation<ReciprocalRootF64>(), t));
    l.unknown();
  }
  if (t != Type::f32) l.unknown();
  if (op == "ex2") return emit_tidy<Exp2>(l, t);
  if (op == "lg2") return emit_tidy<Log2>(l, t);
  if (op == "sin") return emit_tidy<Sin>(l, t);
  if (op == "cos") return emit_tidy<Cos>(l, t);
  if (op == "tanh") return emit_tidy<Tanh>(l, t);
  if (op == "rcp") return emit_tidy<Reciprocal>(l, t);
  if (op == "sqrt") return emit_tidy<SquareRoot>(l, t);
  if (op == "rsqrt") return emit_tidy<ReciprocalRoot>(l, t);
  if (op == "div") return emit_tidy<Divide>(l, t);
  l.unknown();
}

}  // namespace emulator::ptx
